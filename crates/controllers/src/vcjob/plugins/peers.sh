# Waits until as many of the names in the files $KATMAI_PEERS are known as $KATMAI_PEERS_LEAST says, or
# until $KATMAI_PEERS_SECONDS have passed. It ends well in either case: whether a pod can do without its
# peers is for its own containers to say.
end=$(($(date +%s) + KATMAI_PEERS_SECONDS))
is_known() {
  if command -v getent >/dev/null 2>&1; then getent hosts "$1"; else nslookup "$1"; fi >/dev/null 2>&1
}
# A file need not end with a line.
unknown=$(for file in $KATMAI_PEERS; do cat "$file"; echo; done 2>/dev/null)
known=0
while :; do
  rest=
  for name in $unknown; do
    if is_known "$name.$KATMAI_PEERS_DOMAIN"; then known=$((known + 1)); else rest="$rest $name"; fi
    if [ "$known" -ge "$KATMAI_PEERS_LEAST" ]; then exit 0; fi
    if [ "$(date +%s)" -ge "$end" ]; then
      echo "after $KATMAI_PEERS_SECONDS s $known of $KATMAI_PEERS_LEAST names are known"
      exit 0
    fi
  done
  if [ -z "$rest" ]; then exit 0; fi
  unknown=$rest
  sleep 1
done
