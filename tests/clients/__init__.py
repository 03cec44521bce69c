"""Do the clients do what their users expect, against a real daemon?"""
