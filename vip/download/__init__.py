"""Videos of other machines: `fetch` gets one of a list, `single` the one whose address was typed."""
