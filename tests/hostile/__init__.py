"""What if the sandbox is an enemy?"""
