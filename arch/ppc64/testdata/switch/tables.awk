# Reads the output of a compiler twice and lists the jump tables: the function,
# the table's label, the label that its entries are relative to ("-" where they
# are addresses) and the labels of the targets, of which 0 is the base.
$1 == ".type" && $2 ~ /,$/ && $3 ~ /function/ { function_ = substr($2, 1, length($2) - 1) }
$1 == ".type" && $2 ~ /,@function$/ { function_ = $2; sub(/,.*/, "", function_) }
/^[A-Za-z_.][A-Za-z0-9_.]*:/ {
	label = $1
	sub(/:.*/, "", label)
	if (FNR == NR)
		home[label] = function_
	else
		print_table()
	table = label
	next
}
FNR != NR && $1 ~ /^\.(long|4byte|quad|8byte)$/ {
	gsub(/[()]/, "")
	n = split($2, part, "-")
	if ($2 == "0")
		entries = entries " 0"
	if (part[1] in home && part[1] ~ /^L/ && table !~ /^\.LC/) {
		base = n == 2 ? part[2] : "-"
		entries = entries " " part[1]
		owner = home[part[1]]
	}
}
END { print_table() }

function print_table() {
	if (base != "")
		print owner, table, base entries
	entries = base = ""
}
