package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"xol/session"
)

// schemaFolder has a schema for each record that commands print as JSON.
var schemaFolder = filepath.Join(docs, "reference", "schema")

// recordsOf says which records have which schema, and which commands print them.
var recordsOf = []struct{ schema, command, what string }{
	{"decode", "xol decode -o jsonl", "A line for each instruction."},
	{"analyze-function", "xol analyze -o jsonl", "A line for each function."},
	{"analyze-totals", "xol analyze -o jsonl", "A line for each file."},
	{"analyze-insn", "xol analyze --insns -o jsonl", "A line for each instruction."},
	{"analyze-marker", "xol analyze --markers -o jsonl", "A line for each static marker."},
	{"summary-file", "xol analyze --summary -o jsonl", "A line for each file."},
	{"summary-totals", "xol analyze --summary -o jsonl", "The last line."},
	{"explain", "xol explain -o json", "An object for each place. Where there is no text that could be judged, it has only the answer."},
	{"check", "xol check -o jsonl", "A line for each place."},
	{"relocate", "xol relocate -o json", "An object for each line of the input."},
	{"verify", "xol verify -o json", "One object."},
	{"matrix", "xol matrix -o jsonl", "A line for each case, target and mode."},
	{"diff-function", "xol diff -o jsonl", "A line for each function."},
	{"diff-totals", "xol diff -o jsonl", "The last line."},
	{"diff-place", "xol diff --insns -o jsonl", "A line for each answer that is another one, and each place in one file only."},
	{"count", "xol count -o jsonl", "A line for each place."},
	{"trace", "xol trace -o jsonl", "A line for each hit."},
	{"latency", "xol latency -o json", "An object for each function."},
	{"probing-plan", "xol count --dry-run -o jsonl", "A line for each place; with trace and latency as well."},
	{"probing-summary", "xol count --summary FILE", "One object, in the file; with trace and latency as well."},
}

// moreRecords are commands beside those of the golden files.
var moreRecords = []invocation{
	{command: "analyze -o jsonl amd64.elf"}, {command: "analyze -o jsonl kernel.elf"},
	{command: "analyze --insns -o jsonl kernel.elf"}, {command: "analyze --insns -o jsonl --profile uprobe-linux-7.3 amd64.elf"},
	{command: "analyze --markers -o jsonl markers-amd64.elf"},
	{command: "explain -o json kernel.elf vfs_read"}, {command: "explain -o json --region amd64.elf main"},
	{command: "explain -o json --profile uprobe-linux-7.3 hazards.elf clears"},
	{command: "decode --arch amd64 --profile linux-6.12 -o jsonl e8fb0f0000 cc 0f05"}, {command: "decode --arch amd64 -o jsonl e8fb0f0000 06"},
	{command: "relocate --arch amd64 --from 0x1000 --to 0x400000 -o json e8fb0f0000"}, {command: "relocate --arch amd64 --from 0x1000 --to 0x400000 -o json cc"},
	{command: "analyze --summary -o jsonl --profile uprobe-linux-6.12 hazards.elf arm64.elf"},
	{command: "check --in kernel.elf -o jsonl", stdin: "vfs_read\nforbidden\nkprobe:vfs_write+1 { }\n"},
}

// schemaOf returns the name of the schema for a record of a command.
func schemaOf(command string, record map[string]any) string {
	name, _, _ := strings.Cut(command, " ")
	switch {
	case strings.Contains(command, "--dry-run"):
		return "probing-plan"
	case name == "analyze" && strings.Contains(command, "--summary"):
		return "summary-" + fmt.Sprint(record["kind"])
	case name == "analyze" && strings.Contains(command, "--markers"):
		return "analyze-marker"
	case name == "analyze" && strings.Contains(command, "--insns"):
		return "analyze-insn"
	case name == "diff" && strings.Contains(command, "--insns"):
		return "diff-place"
	case name == "analyze", name == "diff":
		return name + "-" + fmt.Sprint(record["kind"])
	}
	return name
}

// strict takes a schema's word for it that it names all fields: users may meet new
// ones, we may not forget one.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			strict(v)
		}
	case []any:
		for _, v := range s {
			strict(v)
		}
	}
}

func readSchema(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(schemaFolder, name+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return schema
}

// TestSchemas validates what commands print.
func TestSchemas(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	c := jsonschema.NewCompiler()
	for _, r := range recordsOf {
		schema := readSchema(t, r.schema)
		strict(schema)
		if err := c.AddResource(r.schema+".json", schema); err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(r.schema + ".json")
		if err != nil {
			t.Fatal(err)
		}
		schemas[r.schema] = compiled
	}
	t.Chdir("testdata")
	seen := map[string]int{}
	validate := func(command, out string) {
		decoder := json.NewDecoder(strings.NewReader(out))
		decoder.UseNumber()
		for decoder.More() {
			var value any
			if err := decoder.Decode(&value); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			records, ok := value.([]any)
			if !ok {
				records = []any{value}
			}
			for _, record := range records {
				name := schemaOf(command, record.(map[string]any))
				seen[name]++
				if schemas[name] == nil {
					t.Errorf("%s: there is no schema %s", command, name)
				} else if err := schemas[name].Validate(record); err != nil {
					t.Errorf("%s: %v", command, err)
				}
			}
		}
	}
	commands := slices.Clone(moreRecords)
	files, _ := filepath.Glob("*.golden")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, goldenCommands(string(data))...)
	}
	list := regexp.MustCompile(`^(analyze|diff) `)
	for _, inv := range commands {
		isLines := strings.Contains(inv.command, " jsonl")
		if !isLines && (!strings.Contains(inv.command, "-o json") || list.MatchString(inv.command)) {
			continue
		}
		if out := xol(inv.command, inv.stdin); out.status <= 1 {
			validate(inv.command, out.stdout)
		}
	}
	for command, out := range recordedProbing(t) {
		validate(command, out)
	}
	validate("probing-summary", string(summaryJSON(&session.Summary{Probes: 3, Jumps: 1, Refused: map[string]int{"amd64/example": 2}}, 0)))
	for _, r := range recordsOf {
		if seen[r.schema] == 0 && r.schema != "matrix" && r.schema != "verify" { // these take long
			t.Errorf("nothing printed a record %s", r.schema)
		}
	}
}

// recordedProbing returns the records of the commands that probe programs, as TestProbing
// has them on file, by the commands.
func recordedProbing(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("probing.txt")
	if err != nil {
		t.Fatal(err)
	}
	recorded, command := map[string]string{}, ""
	for line := range strings.Lines(string(data)) {
		next, starts := strings.CutPrefix(line, "$ xol ")
		switch {
		case starts:
			command = strings.TrimSpace(next)
		case strings.Contains(command, "-o json") && !strings.ContainsAny(line[:1], "#!="):
			recorded[command] += line
		}
	}
	return recorded
}

// TestPagesOfJSON compares the reference of fields with the schemas.
func TestPagesOfJSON(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# JSON

With ` + "`-o json`, `-o jsonl` or `-o csv`" + ` commands print records for programs. Names of fields
never change; new fields may be added. Addresses are strings ("0x…"), since not every reader
keeps 64 bits of a number; sizes are numbers; bytes are hexadecimal digits. In CSV a group
` + "`probe`" + ` with a field ` + "`lost`" + ` is the column ` + "`probe_lost`" + `.

A test validates what the commands print by the schemas (JSON Schema, draft 2020-12).
`)
	for _, r := range recordsOf {
		fmt.Fprintf(&b, "\n## %s\n\n`%s`. %s Schema: [%s](schema/%s.schema.json).\n\n| field | type | meaning |\n|---|---|---|\n",
			r.schema, r.command, r.what, r.schema, r.schema)
		fieldRows(&b, "", readSchema(t, r.schema))
	}
	comparePages(t, "reference", "json.md", []page{{"", b.String()}})
}

// fieldRows writes a row for each field of an object, those inside of it after it.
func fieldRows(b *strings.Builder, prefix string, schema map[string]any) {
	fields, _ := schema["properties"].(map[string]any)
	var required []string
	list, _ := schema["required"].([]any)
	for _, name := range list {
		required = append(required, fmt.Sprint(name))
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field := fields[name].(map[string]any)
		typ := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(field["type"]), "[]")), " or ")
		if !slices.Contains(required, name) {
			typ += ", may be absent"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %v |\n", prefix, name, typ, field["description"])
		fieldRows(b, prefix+name+".", field)
		if items, ok := field["items"].(map[string]any); ok {
			fieldRows(b, prefix+name+"[].", items)
		}
	}
}
