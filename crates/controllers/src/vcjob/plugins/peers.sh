# Waits until as many of the names in the files $KATMAI_PEERS are known as $KATMAI_PEERS_LEAST says, less
# the pods that have ended ($KATMAI_PEERS_ENDED) and $KATMAI_PEERS_MOST of them at most, or until
# $KATMAI_PEERS_SECONDS have passed. It ends well in either case: whether a pod can do without its peers
# is for its own containers to say.
end=$(($(date +%s) + KATMAI_PEERS_SECONDS))
is_known() {
  if command -v getent >/dev/null 2>&1; then getent hosts "$1"; else nslookup "$1"; fi >/dev/null 2>&1
}
# A file need not end with a line.
unknown=$(for file in $KATMAI_PEERS; do cat "$file"; echo; done 2>/dev/null)
known=0
while :; do
  # The file comes once a pod has ended, and others have yet to start.
  ended=$(cat "$KATMAI_PEERS_ENDED" 2>/dev/null)
  case $ended in '' | *[!0-9]*) ended=0 ;; esac
  least=$((KATMAI_PEERS_LEAST - ended))
  if [ "$least" -gt "$KATMAI_PEERS_MOST" ]; then least=$KATMAI_PEERS_MOST; fi
  if [ "$known" -ge "$least" ]; then exit 0; fi
  rest=
  for name in $unknown; do
    if is_known "$name.$KATMAI_PEERS_DOMAIN"; then known=$((known + 1)); else rest="$rest $name"; fi
    if [ "$known" -ge "$least" ]; then exit 0; fi
    if [ "$(date +%s)" -ge "$end" ]; then
      echo "after $KATMAI_PEERS_SECONDS s $known of $least names are known"
      exit 0
    fi
  done
  if [ -z "$rest" ]; then exit 0; fi
  unknown=$rest
  sleep 1
done
