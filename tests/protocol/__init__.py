"""Is the wire declared well, and is what is generated from it fresh?"""
