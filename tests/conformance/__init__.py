"""Does any implementation obey the seeds? Cases as data, and a runner that plays them against any server."""
