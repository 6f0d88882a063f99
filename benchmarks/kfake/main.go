// Command kfake runs franz-go's stand-in for Kafka until its standard input ends: one broker, or as many as its argument
// says. It prints their addresses.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	brokers := 1
	if len(os.Args) > 1 {
		brokers, _ = strconv.Atoi(os.Args[1])
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	io.Copy(io.Discard, os.Stdin)
}
