"""All input and output of a server: sockets, timers, files. It runs any service and depends on none."""
