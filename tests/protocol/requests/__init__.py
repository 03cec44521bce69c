"""Each request on the wire: what it takes, what it refuses, what it is answered with."""
