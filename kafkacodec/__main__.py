"""``python -m kafkacodec``: the command."""

from kafkacodec.cli.__main__ import main

if __name__ == "__main__":
    main()
