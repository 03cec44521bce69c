"""An MCP server over a workspace's daemon: MCP on stdin and stdout, the daemon's own protocol behind it.

It decides nothing. What may be asked and by whom, what a path means and who sees what is the daemon's business; the
schemas of the tools are made from the protocol's models.
"""
