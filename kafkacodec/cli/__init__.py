"""The ``kafkacodec`` command. Needs the extra ``cli``: ``pip install 'kafkacodec[cli]'``."""
