"""Any MCP client, over real stdio, beside a daemon that is real."""
