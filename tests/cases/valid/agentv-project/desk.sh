# Answers with the file that it gets.
while [ "$1" != "--out" ]; do
  [ "$1" = "--file" ] && cat "$2" > found.tmp && shift
  shift
done
cat found.tmp > "$2"
