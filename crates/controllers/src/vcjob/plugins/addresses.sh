# Waits until the addresses of the pod's peers are told in the file $KATMAI_PEERS_ADDRESSES, or until
# $KATMAI_PEERS_SECONDS have passed. It ends well in either case: whether a pod can do without its peers
# is for its own containers to say.
end=$(($(date +%s) + KATMAI_PEERS_SECONDS))
until [ -s "$KATMAI_PEERS_ADDRESSES" ]; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "after $KATMAI_PEERS_SECONDS s no addresses are told"
    exit 0
  fi
  sleep 1
done
