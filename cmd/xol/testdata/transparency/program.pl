use strict;
use warnings;

# What Perl programs do: expressions, hashes, sorting, children, die.
my %count;
my $text = join ' ', map { "word" . ($_ % 17) . " number$_" } 1 .. 2000;
$count{$1}++ while $text =~ /\b([a-z]+\d)\w*\b/g;
printf "%s=%d\n", $_, $count{$_} for sort keys %count;

my @sorted = sort { $a <=> $b } map { ($_ * 7919) % 10007 } 1 .. 3000;
print "@sorted[0 .. 9]\n";
(my $copy = $text) =~ tr/a-z/A-Z/;
print substr($copy, 0, 40), "\n";
print scalar reverse("transparency"), "\n";

sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
print "fib ", fib(16), "\n";

my $out = `echo child; exit 3`;
print "child said $out", "status ", $? >> 8, "\n";
my $pid = fork // die "fork: $!";
if ($pid == 0) {
	exec 'sh', '-c', 'exit 9';
}
waitpid $pid, 0;
print "exec ", $? >> 8, "\n";

local $SIG{USR1} = sub { print "signal\n" };
kill 'USR1', $$;
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 5; };
print "caught $@";
eval { die { code => 42 } };
print "died with $@->{code}\n";
open my $f, '-|', 'seq', '1', '1000' or die;
my $sum = 0;
$sum += $_ while <$f>;
close $f;
print "sum $sum\n";
die "the end\n";
