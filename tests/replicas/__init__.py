"""Replicas of the line protocol under kills: servers, clients that note what they saw, and what judges that."""
