"""The engine `openai:MODEL`: api.openai.com and every server that speaks its API."""
