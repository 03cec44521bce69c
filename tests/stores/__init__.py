"""Does every store keep the promise of its port?"""
