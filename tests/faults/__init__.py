"""What if it dies here?"""
