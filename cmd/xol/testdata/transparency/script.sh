#!/bin/bash
# A script that does much of what scripts do: subshells, pipes, functions, traps, arrays,
# arithmetic, here-documents, background jobs. It prints the same each time.
set -u
LC_ALL=C
export LC_ALL
work=$(mktemp -d)

section() {
	printf '== %s ==\n' "$1"
}

section arithmetic
sum=0
for i in $(seq 1 200); do
	sum=$((sum + i * i % 7))
done
echo "sum $sum"
fib() {
	local n=$1
	if ((n < 2)); then
		echo "$n"
		return
	fi
	local a b
	a=$(fib $((n - 1)))
	b=$(fib $((n - 2)))
	echo $((a + b))
}
echo "fib $(fib 9)"
echo "shifts $((1 << 20)) $((-17 / 4)) $((-17 % 4)) $((0x1f ^ 5))"

section strings
name=transparency
echo "${name^^} ${name:0:5} ${#name} ${name/par/PAR} ${name%cy} ${name#trans}"
path=/usr/lib/x/file.tar.gz
echo "${path##*/} ${path%.*} ${path%%.*}"
printf '%05d|%-8s|%8.3f|%x\n' 42 left 3.14159 255
IFS=: read -r first second rest <<<"a:b:c:d"
echo "$first $second $rest"

section arrays
declare -a list=(pear apple fig date cherry)
echo "${#list[@]} ${list[2]} ${list[*]:1:2}"
printf '%s\n' "${list[@]}" | sort | tr '\n' ' '
echo
declare -A map
for fruit in "${list[@]}"; do
	map[$fruit]=${#fruit}
done
for key in $(printf '%s\n' "${!map[@]}" | sort); do
	echo "$key=${map[$key]}"
done

section pipes
seq 1 1000 | grep 7 | awk '{ s += $1 } END { print s, NR }'
seq 1 50 | while read -r n; do
	echo $((n * n))
done | tail -3
printf 'b\na\nc\n' | sort -r | paste -sd, -
seq 1 20 | xargs -n 5 echo | cat -n
{ echo one; echo two >&2; echo three; } 2>&1 | sort
false | true
echo "status $? ${PIPESTATUS[*]}"
(exit 3) | (exit 4) | true
echo "statuses ${PIPESTATUS[*]}"

section subshells
x=outer
(x=inner; echo "in $x")
echo "out $x"
result=$( (echo deep; (echo deeper; (echo deepest))) )
echo "$result"
count=$(for i in 1 2 3 4 5; do (echo "$i"); done | wc -l)
echo "count $count"
diff <(seq 1 5) <(seq 2 6)
echo "diff $?"

section files
for i in 1 2 3; do
	printf 'line %d\n' $i $((i + 1)) >"$work/file$i"
done
cat "$work"/file? | sort | uniq -c
cp "$work/file1" "$work/copy"
cmp "$work/file1" "$work/copy" && echo same
mv "$work/copy" "$work/moved"
ls "$work"
ln -s file2 "$work/link"
readlink "$work/link"
mkdir -p "$work/a/b/c"
touch "$work/a/b/c/leaf"
(cd "$work" && find a | sort)
wc -c <"$work/file3"
head -c 4 "$work/file3" | od -An -tx1
rm -r "$work/a"
test -e "$work/a" || echo gone

section here
cat <<EOF
sum is $sum, name is $name
$(echo from a command)
EOF
cat <<'EOF' | tr a-z A-Z
no $expansion here
EOF
while read -r a b; do
	echo "$b $a"
done <<<"x y
z w"

section control
case $name in
trans*) echo matched ;;
*) echo unmatched ;;
esac
for ((i = 0; i < 5; i++)); do
	((i == 1)) && continue
	((i == 4)) && break
	echo "i $i"
done
until ((sum < 100)); do
	sum=$((sum / 2))
done
echo "sum $sum"
if [[ $name =~ ^(tr)(an) ]]; then
	echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
fi
[[ 10 -gt 9 && abc < abd ]] && echo less

section functions
recurse() {
	local depth=$1
	[ "$depth" -eq 0 ] && return 7
	recurse $((depth - 1))
}
recurse 50
echo "returned $?"
outer() {
	inner() { echo "inner of $1"; }
	inner "$1"
}
outer first
inner second
swap() { echo "$2 $1"; }
read -r p q <<<"$(swap left right)"
echo "$p $q"

section jobs
for i in 1 2 3 4; do
	(
		seq 1 $((i * 100)) | awk '{ s += $1 } END { print s }' >"$work/job$i"
		exit $i
	) &
	pids[i]=$!
done
for i in 1 2 3 4; do
	wait "${pids[i]}"
	echo "job $i: $? $(cat "$work/job$i")"
done
sleep 5 &
kill -TERM $!
wait $! 2>/dev/null
echo "killed $?"

section traps
(
	trap 'echo got usr1' USR1
	kill -USR1 $BASHPID
	echo after
)
(
	trap 'echo leaving' EXIT
	exit 5
)
echo "left $?"
{ bash -c 'ulimit -c 0; kill -SEGV $$'; } 2>/dev/null
echo "crash $?"
{ bash -c 'ulimit -c 0; kill -ABRT $$'; } 2>/dev/null
echo "abort $?"

section errors
ls "$work/none" 2>&1 | sed "s#$work#WORK#"
/nonexistent/program 2>/dev/null
echo "status $?"
"$work" 2>/dev/null
echo "status $?"
cat </dev/null
(set -e; false; echo never)
echo "set -e $?"
(unset nothing; : "${nothing:?is unset}") 2>&1 | sed 's/.*nothing/nothing/'
eval 'echo evaluated $((6 * 7))'
exec 3>"$work/three"
echo to three >&3
exec 3>&-
cat "$work/three"
read -rt 0.01 nothing_there < <(sleep 0.2) || echo "no line"

section end
rm -r "$work"
exit 42
