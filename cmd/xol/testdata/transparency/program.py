"""What Python programs do: json, expressions, threads, children, an exception."""
import collections
import hashlib
import json
import re
import subprocess
import sys
import threading

data = {"numbers": list(range(500)), "nested": {"a": [1.5, None, True], "b": "text \u00e9"}}
text = json.dumps(data, sort_keys=True)
assert json.loads(text) == data
print(len(text), hashlib.sha256(text.encode()).hexdigest())

words = re.findall(r"\b(\w)(\w*)\b", " ".join(f"word{i} value{i * i}" for i in range(300)))
print(len(words), collections.Counter(first for first, _ in words).most_common(2))
print(re.sub(r"(\d+)", lambda m: str(int(m.group(1)) * 2), "a1 b22 c333"))

total = 0
lock = threading.Lock()


def add(n):
    global total
    for i in range(n):
        with lock:
            total += i


threads = [threading.Thread(target=add, args=(1000,)) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("total", total)

for command in (["echo", "from a child"], ["sh", "-c", "exit 7"], ["sort", "-n"]):
    done = subprocess.run(command, input="10\n9\n100\n", capture_output=True, text=True)
    print(command[0], done.returncode, done.stdout.split())


def depth(n):
    return 1 / (n - 1) if n == 1 else depth(n - 1)


try:
    depth(20)
except ZeroDivisionError as e:
    print("caught", e)

numbers = sorted((i * 7919) % 10007 for i in range(5000))
print(sum(numbers[:100]), numbers[-1], sum(x * x for x in numbers) % 1000003)
sys.stdout.flush()
depth(5)
