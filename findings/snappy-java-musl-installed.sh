#!/usr/bin/env bash
# snappy-java loads its library for musl on a system with glibc, and fails, if the package of musl is installed beside it.
#
# Versions: snappy-java 1.1.10.8, Java 17, Debian 12 with glibc on x86-64.
#
# A program made with glibc, as the JVM is here, goes on to use glibc where musl is installed too: Debian's and Ubuntu's
# packages `musl` and `musl-tools` add /lib/ld-musl-x86_64.so.1 and change nothing else. snappy-java takes that file for
# the sign that the JVM itself runs with musl. It unpacks the library made for Alpine Linux, which needs
# libc.musl-x86_64.so.1, and Snappy cannot be used at all.
# Why it matters: whoever installs musl-tools to link one static program finds that Parquet files, Spark's checkpoints
# and Kafka's snappy topics fail with UnsatisfiedLinkError or NoClassDefFoundError on the same machine.
#
# The script does not install musl: in a mount namespace of its own, it adds an empty file of that name to /lib.
#
# Output seen: see EXPECTED. The script fails if snappy-java behaves differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact=org.xerial.snappy:snappy-java:1.1.10.8 -DoutputDirectory="$work"

cat > "$work/Compress.java" <<'JAVA'
import org.xerial.snappy.Snappy;

public class Compress {
    public static void main(String[] arguments) throws Exception {
        byte[] data = new byte[1000];
        try {
            System.out.println("compressed " + (Snappy.compress(data).length < data.length));
        } catch (UnsatisfiedLinkError error) {
            System.out.println("UnsatisfiedLinkError, " + error.getMessage().replaceAll("^.*so: (\\S+): .*$", "$1"));
        }
    }
}
JAVA
compress="java -cp $work/snappy-java-1.1.10.8.jar $work/Compress.java"

mkdir "$work/lib"
touch "$work/lib/ld-musl-x86_64.so.1"
with_musl() {
    unshare --user --map-root-user --mount \
        sh -c "mount -t overlay overlay -o lowerdir=$work/lib:/usr/lib /usr/lib && exec $1"
}

EXPECTED="alone: compressed true
beside musl: UnsatisfiedLinkError, libc.musl-x86_64.so.1"
[ ! -e /lib/ld-musl-x86_64.so.1 ] || { echo "run this where the package musl is not installed" >&2; exit 1; }
SEEN="alone: $($compress)
beside musl: $(with_musl "$compress")"
echo "$SEEN"
[ "$SEEN" = "$EXPECTED" ]
