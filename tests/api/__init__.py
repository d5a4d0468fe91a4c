"""The process behind `tests.api_server`: HTTP (wire), what is answered (answers), when (chats), and the Batch API (batches)."""
