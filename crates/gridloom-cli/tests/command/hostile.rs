//! Every command with wrong, missing, huge and hostile input: a clear line, a failure, no panic,
//! and nothing changed.

use crate::support::{Folder, SCALE, command, succeeds, text};

/// Files to be hostile with.
struct Files {
    folder: Folder,
}

impl Files {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        folder.write("scale.ptx", SCALE.as_bytes());
        folder.write("empty", b"");
        folder.write("binary", &[0xff, 0xfe, 0, 1, 0x7f]);
        folder.write("zeros", &[0; 4096]);
        folder.write("deep.ptx", format!("{HEADER}.entry k() {{ {} }}", "{".repeat(200_000)).as_bytes());
        folder.write("line.ptx", format!("{HEADER}{}", "x".repeat(1 << 20)).as_bytes());
        folder.write("comment.ptx", format!("{HEADER}/* no end").as_bytes());
        folder.write("escape\u{1b}[31m.ptx", b"\x1b[31m");
        folder
            .write("huge-numbers.ptx", format!("{HEADER}.global .b8 x[99999999999999999999999];").as_bytes());
        folder.write(
            "huge-array.ptx",
            format!("{HEADER}.global .b8 x[9223372036854775807]; .entry k() {{ ret; }}").as_bytes(),
        );
        folder.write("endless.ptx", format!("{HEADER}.entry k() {{ L: bra L; }}").as_bytes());
        folder.write("trap.ptx", format!("{HEADER}.entry k() {{ trap; }}").as_bytes());
        folder.write("none.ptx", HEADER.as_bytes());
        folder.write("two.ptx", format!("{HEADER}.entry a() {{ ret; }} .entry b() {{ ret; }}").as_bytes());
        folder.write("deep.json", "[".repeat(200_000).as_bytes());
        folder.write("deep.dot", format!("digraph {{ {}", "subgraph {".repeat(200_000)).as_bytes());
        folder.write("graph.dot", b"digraph { a -> b }");
        folder.write("escape.dot", b"digraph { \"\x1b[31m\" -> b -> ");
        folder.write("cut.dot", b"digraph { a -> ");
        folder.write("other.json", b"{\"format\": \"something else\"}");
        folder.write("wrong.json", b"{\"format\": \"gridloom-graph\", \"nodes\": 7}");
        folder.write(
            "profile.json",
            b"{\"format\": \"gridloom-profile\", \"version\": 1, \"nodes\": [{\"id\": \"a\"}]}",
        );
        folder.write("newer.json", b"{\"format\": \"gridloom-graph\", \"version\": 2, \"graphs\": []}");
        folder.write("data.bin", &[1; 16]);
        let heat = folder.path("heat.gridloom");
        succeeds(&["demo", "heat", "--device", "cpu", "--json", "--save", &heat]);
        let heat = std::fs::read(heat).expect("saved");
        folder.write("cut.gridloom", &heat[..heat.len() - 9]);
        let huge = std::fs::File::create(folder.path("huge")).expect("a temporary file");
        huge.set_len(1 << 40).expect("a sparse file");
        Files { folder }
    }
}

const HEADER: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// Arguments, in which `@name` is a file of [`Files`], and what the complaint must say.
const CASES: &[(&str, &str)] = &[
    // The command line itself.
    ("--no-such-option", "--no-such-option"),
    ("no-such-command", "no-such-command"),
    ("devices extra", "extra"),
    // Demonstrations.
    ("demo", "<PROGRAM>"),
    ("demo nothing", "nothing"),
    ("demo heat --passes 0", "--passes"),
    ("demo heat --passes -1", "-1"),
    ("demo heat --passes 4294967296", "from 1 to 2147483647"),
    ("demo heat --passes one", "one"),
    ("demo heat --size 99999999999999999999", "99999999999999999999"),
    ("demo heat --device tpu", "tpu"),
    ("demo heat --engine fast", "fast"),
    ("demo heat --device cpu --dot /nowhere/at/all", "/nowhere/at/all"),
    ("demo heat --device cpu --dot @", "directory"),
    ("demo heat --device cpu --dot /dev/full", "/dev/full"),
    ("demo heat --device cpu extra", "extra"),
    ("demo heat --device cpu --checked --unchecked", "--unchecked"),
    ("demo bisect --device cpu --engine jit --checked", "--unchecked"),
    ("demo bisect --device cpu --dot /nowhere/at/all", "/nowhere/at/all"),
    ("demo switch --device cpu --passes 5", "heat, life, bisect and poisson"),
    ("demo bisect --device cpu --size 5", "heat, life and poisson"),
    ("demo life --device cpu --size 5000", "at most 4096"),
    ("demo life --device cpu --svg /nowhere/at/all", "/nowhere/at/all"),
    ("demo life --device cpu --png /nowhere/at/all", "/nowhere/at/all"),
    ("demo heat --device cpu --save /nowhere/at/all", "/nowhere/at/all"),
    ("demo heat --compare --device cpu", "--compare"),
    // Saved graphs.
    ("run", "<FILE>"),
    ("run @missing", "No such file"),
    ("run @", "directory"),
    ("run @empty", "no saved graph"),
    ("run @binary", "no saved graph"),
    ("run @huge", "larger than"),
    ("run /dev/zero", "larger than 256 MiB"),
    ("run @graph.dot", "no saved graph"),
    ("run @cut.gridloom", "end is missing"),
    ("run @heat.gridloom --device tpu", "tpu"),
    ("run @heat.gridloom --device cpu --repeat 0", "at least 1"),
    ("run @heat.gridloom --device cpu --repeat -1", "at least 1"),
    ("run @heat.gridloom --device cpu --timeout -1", "above 0"),
    ("run @heat.gridloom --device cpu --memory -1", "--memory <MIB>"),
    ("demo heat --passes -1", "from 1 to 2147483647"),
    ("demo heat --size few", "from 3"),
    ("run @heat.gridloom --device cpu --timeout 0", "above 0"),
    ("run @heat.gridloom --device cpu --timeout soon", "a number of seconds"),
    ("run @heat.gridloom --device cpu --memory 0", "the limit is 0 bytes"),
    ("run @heat.gridloom --device cpu --set passes", "NAME=VALUE"),
    ("run @heat.gridloom --device cpu --set =3", "NAME=VALUE"),
    ("run @heat.gridloom --device cpu --set pases=3", "the graph has rod, passes"),
    ("run @heat.gridloom --device cpu --set passes=many", "not a number, and no file"),
    ("run @heat.gridloom --device cpu --set passes=3000000000", "from -2147483648 to 2147483647"),
    ("run @heat.gridloom --device cpu --set passes=1.5", "a whole number"),
    ("run @heat.gridloom --device cpu --set rod=1e39", "too large"),
    ("run @heat.gridloom --device cpu --set rod=@graph.dot", "not an npy file"),
    ("run @heat.gridloom --device cpu --get rod", "NAME=FILE"),
    ("run @heat.gridloom --device cpu --get heat=x.npy", "the graph has rod"),
    ("run @heat.gridloom --device cpu --get rod=/nowhere/at/all", "/nowhere/at/all"),
    ("profile", "<FILE|DEMO>"),
    ("profile @missing", "no such demonstration"),
    ("profile @graph.dot", "no saved graph"),
    ("profile @heat.gridloom --runs 0", "--runs"),
    ("profile @heat.gridloom --json --all", "--all"),
    ("profile @heat.gridloom --device cpu --html /nowhere/at/all", "/nowhere/at/all"),
    ("profile @heat.gridloom --device cpu --trace @", "directory"),
    ("diff @graph.dot", "<OTHER>"),
    ("diff @graph.dot @missing", "No such file"),
    ("diff @cut.gridloom @graph.dot", "end is missing"),
    ("completions", "<SHELL>"),
    ("completions tcsh", "tcsh"),
    ("man -o /dev/null/man", "/dev/null/man"),
    ("demo switch --device cpu --dot /nowhere/at/all", "/nowhere/at/all"),
    // Graphs in files.
    ("show", "<FILE>"),
    ("show @missing", "No such file"),
    ("show @profile.json", "this is a profile; show its graph"),
    ("show @newer.json", "version 2 of the format"),
    ("show @", "directory"),
    ("show @empty", "@empty"),
    ("show @binary", "neither a text file"),
    ("show @zeros", "@zeros"),
    ("show @huge", "larger than 256 MiB"),
    ("show /dev/zero", "larger than 256 MiB"),
    ("show @deep.json", "@deep.json"),
    ("show @deep.dot", "@deep.dot"),
    ("show @other.json", "@other.json"),
    ("show @wrong.json", "@wrong.json"),
    ("show @scale.ptx", "@scale.ptx"),
    ("show @scale.ptx --svg --html", "--html"),
    ("show @scale.ptx --profile @missing", "--html"),
    ("show @escape.dot", "@escape.dot: line 1"),
    ("show @cut.dot", "@cut.dot: line 1"),
    ("show @graph.dot --dot --svg", "--svg"),
    ("show @graph.dot --svg -o @", "directory"),
    ("show @graph.dot --svg -o /nowhere/at/all", "/nowhere/at/all"),
    ("show @graph.dot --html --profile @missing", "No such file"),
    ("show @graph.dot --html --profile @graph.dot", "no profile that Gridloom wrote"),
    ("show @graph.dot --html --profile @other.json", "no profile that Gridloom wrote"),
    ("show @graph.dot --html --profile @profile.json", "invalid type"),
    // Checking PTX.
    ("ptx", "Usage"),
    ("ptx check", "<FILE>"),
    ("ptx check @missing", "No such file"),
    ("ptx check @", "directory"),
    ("ptx check - @scale.ptx -", "name it once"),
    ("ptx info - -", "name it once"),
    ("ptx check @empty", "@empty: a PTX module starts with .version"),
    ("ptx check @binary", "not a text file"),
    ("ptx check @zeros", "a PTX module starts with .version"),
    ("ptx check @huge", "larger than 256 MiB"),
    ("ptx check /dev/zero", "larger than 256 MiB"),
    ("ptx check @deep.ptx", "@deep.ptx:4:"),
    ("ptx check @line.ptx", "@line.ptx:4:"),
    ("ptx check @comment.ptx", "does not end"),
    ("ptx check @escape\u{1b}[31m.ptx", "starts with .version"),
    ("ptx check @huge-numbers.ptx", "@huge-numbers.ptx:4:"),
    ("ptx info @missing", "No such file"),
    ("ptx info @empty", "a PTX module starts with .version"),
    ("ptx info @scale.ptx --kernel nothing", "no kernel `nothing`"),
    ("ptx info @comment.ptx", "does not end"),
    // Running PTX.
    ("ptx run", "<FILE>"),
    ("ptx run @missing", "No such file"),
    ("ptx run @zeros", "a PTX module starts with .version"),
    ("ptx run @none.ptx", "no kernel"),
    ("ptx run @two.ptx", "--kernel"),
    ("ptx run @huge-array.ptx", "x"),
    ("ptx run @scale.ptx --kernel nothing", "nothing"),
    ("ptx run @scale.ptx", "2"),
    ("ptx run @scale.ptx --arg f32:1", "argument"),
    ("ptx run @scale.ptx --arg null --arg f32:1 --arg f32:1", "more arguments"),
    ("ptx run @scale.ptx --arg u64:1234567890120 --arg f32:1", "outside every live allocation"),
    ("ptx run @scale.ptx --arg u64:18446744073709551612 --arg f32:1", "outside every live allocation"),
    ("ptx run @scale.ptx --arg u64:18446744073709551616 --arg f32:1", "out of range"),
    ("ptx run @scale.ptx --arg nonsense --arg f32:1", "nonsense"),
    ("ptx run @scale.ptx --arg f32:1e99", "out of range"),
    ("ptx run @scale.ptx --arg bytes:1 --arg f32:1", "two hexadecimal digits"),
    ("ptx run @scale.ptx --arg in:@missing --arg f32:1", "No such file"),
    ("ptx run @scale.ptx --arg inout:@missing --arg f32:1", "No such file"),
    ("ptx run @scale.ptx --arg in:@empty --arg f32:1", "empty"),
    ("ptx run @scale.ptx --arg in:@huge --arg f32:1", "larger than"),
    ("ptx run @scale.ptx --arg in:@ --arg f32:1", "directory"),
    ("ptx run @scale.ptx --arg out:@new:0 --arg f32:1", "at least one byte"),
    ("ptx run @scale.ptx --arg out:@new:-4 --arg f32:1", "out:FILE:BYTES"),
    ("ptx run @scale.ptx --arg out:@new:1000000000000000 --arg f32:1", "out of memory"),
    ("ptx run @scale.ptx --arg out:@new:9223372036854775808 --arg f32:1", "address space"),
    ("ptx run @scale.ptx --arg out:@new:99999999999999999999 --arg f32:1", "out of range"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --block 5", "beyond the memory of argument 0"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --block 1025", "1024"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --block 0", "at least 1"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --grid 4294967296", "too large"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --grid 4294967295", "grid"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --grid 1,1,1,1", "three extents"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --grid 1,", "whole number"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --shared 4294967295", "shared"),
    ("ptx run @scale.ptx --arg inout:@data.bin --arg f32:1 --shared 4294967296", "4294967296"),
    ("ptx run @endless.ptx --step-limit 1000", "limit of 1000"),
    ("ptx run @endless.ptx --step-limit 99999999999999999999", "99999999999999999999"),
    ("ptx run @trap.ptx", "trap"),
    // Compiling CUDA C++.
    ("cc", "<FILE>"),
    ("cc @missing", "No such file"),
    ("cc @binary", "not a text file"),
    ("cc @huge", "larger than 256 MiB"),
    ("cc @scale.ptx --arch nine", "sm_90"),
    ("cc @scale.ptx --arch sm_", "sm_90"),
];

#[test]
fn every_command_refuses_wrong_missing_huge_and_hostile_input() {
    let files = Files::new("hostile");
    let before = files.folder.names();
    // Only Linux has all of these devices.
    let cases = CASES.iter().filter(|(case, _)| cfg!(target_os = "linux") || !case.contains("/dev/"));
    for (case, says) in cases {
        let expand = |text: &str| text.replace('@', &files.folder.path(""));
        let args: Vec<String> = case.split(' ').map(expand).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = command(&args).output().expect("the command was built with this test");
        let (said, complaint) = (text(&output.stdout), text(&output.stderr));
        // A command that a signal ended has no code.
        let status = output.status;
        assert!(matches!(status.code(), Some(1 | 2)), "{case} ended with {status}:\n{said}\n{complaint}");
        // A place in a file is shown with its line and a caret below it; everything else is one
        // line, and so is the help of a command that needs another word.
        assert!(complaint.contains(&expand(says)), "{case} should say {says:?}:\n{complaint}");
        let shown = ["^", "Usage:", "\n  help: "].iter().any(|mark| complaint.contains(mark));
        assert!(shown || complaint.lines().count() == 1, "{case}:\n{complaint}");
        assert!(shown || complaint.starts_with("error: "), "{case}:\n{complaint}");
        assert!(!complaint.contains("panicked") && !complaint.contains('\u{1b}'), "{case}:\n{complaint:?}");
        assert!(complaint.len() < 4000, "{case}: {} bytes", complaint.len());
    }
    assert_eq!(files.folder.names(), before, "no file came or went");
    assert_eq!(std::fs::read(files.folder.path("data.bin")).expect("still there"), [1; 16]);
}
