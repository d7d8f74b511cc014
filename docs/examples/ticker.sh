# Says "tick" twenty times a second.
while :; do
	echo tick
	sleep 0.05
done
