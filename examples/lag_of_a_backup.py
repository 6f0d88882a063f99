"""How far consumer groups were behind when a backup was made: by the files alone, without a broker.

python lag_of_a_backup.py [DATA_DIRECTORY...]
"""

import sys

import kafkacodec as kc

for line in kc.log.lag(sys.argv[1:] or kc.sample()):
    if line.lag:
        print(f"{line.group}: {line.topic}-{line.partition} is {line.lag} records behind")
