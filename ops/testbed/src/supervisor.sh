# Runs one command and ends it when the standard input of this script closes, that is, when the test process is gone.
# $1 is the signal to ask with first; the rest is the command. The first line on standard output is the command's process id.
signal=$1
shift
exec 3<&0
sh -c 'echo $$; exec "$@"' sh "$@" </dev/null 3<&- &
child=$!
(
  while read -r line <&3; do :; done
  kill -s "$signal" "$child"
  kill -s CONT "$child"
  tries=0
  while kill -0 "$child" && [ $tries -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  kill -s KILL "$child"
) >/dev/null 2>&1 &
watcher=$!
# From here on only the command holds its output, so that its end is seen by the reader.
exec 3<&- >/dev/null 2>&1
wait "$child"
code=$?
kill "$watcher"
exit "$code"
