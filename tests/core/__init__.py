"""Are the rules right?"""
