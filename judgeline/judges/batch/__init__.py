"""The same judges through OpenAI's Batch API: half the price, and up to a day's patience."""
