//! The examples of every command's help run as a shell takes them, each in a network of its own that has what the example names.

use crate::support::{Place, program};
use std::path::Path;
use std::process::Command;

/// Commands whose examples need the same things.
struct Scene {
    commands: &'static [&'static str],
    /// A shell makes it once; each example finds a copy of the directory.
    once: &'static str,
    /// A shell starts it before each example.
    before: &'static str,
}

const RESULTS: Scene = Scene {
    commands: &[
        "run",
        "show",
        "check",
        "fmt",
        "plan",
        "predict",
        "bufferbloat",
        "load",
        "factors",
        "stacks",
        "keywords",
        "compare",
        "diagnose",
        "import",
        "export",
        "lifelines",
        "report",
        "open",
        "client",
        "runs note",
        "runs remove",
        "runs prune",
        "runs tag",
        "runs add",
        "runs again",
        "runs changes",
        "archive",
        "gate",
        "ab",
        "plot",
        "series",
        "session",
        "probe",
        "probe list",
        "probe show",
        "probe remove",
    ],
    once: r#"
        sed -i 's/host khons, udjat;/host khons, udjat { work 0.1 ms per message; }/' wan.stackline
        stackline fmt wan.stackline >formatted && mv formatted wan.stackline
        kept() {
            stackline run --trace --name kept wan.stackline >kept.log
            mv stackline-runs/*-kept stackline-runs/$1
        }
        for run in 20260101-120000-first 20260101-120000-wan 20261127-180000-RUN 20261128-203610-after 20261128-203611-before; do
            kept $run
        done
        for log in server client a b old; do
            stackline export before --text >$log.log
        done
        gzip old.log
        { cat wan.stackline; echo 'factor bandwidth x 10; factor delay x 0.1;'; } >many.stackline
        cp wan.stackline pair.stackline
        sed -i 's/ across wan//' pair.stackline
        cp server.log app.log
        { echo '```stackline'; cat wan.stackline; echo '```'; } >README.md
        printf '%s\n' '{"id": 1, "check": {"file": "wan.stackline"}}' '{"quit": true}' >requests.jsonl
    "#,
    before: r"
        case $example in
            'stackline compare last') stackline run --over 'tcp, tcp(nodelay)' wan.stackline >run.log ;;
            *'probe list'* | *'probe show'* | *'probe remove'*)
                for name in wan night; do
                    stackline probe wan.stackline --name $name --count 1 >probe.log
                done ;;
            *' --remove') stackline runs tag last nightly >tag.log ;;
            *'runs add '* | *'runs again '*)
                export STACKLINE_RUNS=other
                for name in wan shared; do
                    stackline run --name $name wan.stackline >run.log
                    stackline archive $name -o $name.tar.gz >archive.log
                done
                mv wan.tar.gz 20260101-120000-wan.stackline.tar.gz
                unset STACKLINE_RUNS ;;
            *'stackline gate '* | *' --against '*)
                rm -r stackline-runs
                sed -i 's/ loss 0.1%//; s/^2 from/5 from/' wan.stackline
                for name in before after now; do
                    stackline run --name $name wan.stackline >run.log
                done
                mkdir bench
                stackline gate --save bench/baseline.json before >save.log
                cp wan.stackline bench.stackline ;;
            *'stackline ab '*)
                sed -i 's/ loss 0.1%//' wan.stackline
                sed 's/ 5 ms/ 4 ms/' wan.stackline >after.stackline
                cp wan.stackline before.stackline ;;
            *'runs changes --tag'*) stackline runs tag last nightly >tag.log ;;
            *'plot last'* | *'plot study'*)
                sed -i 's/10 Mbit/<R>/; s/<R>.s/<R>/; s/ 5 ms loss 0.1%/ 5 ms loss <L>/' wan.stackline
                echo 'R = 5 Mbit/s, 20 Mbit/s; L = 0.1%, 0.2%, 0.5%;' >>wan.stackline
                stackline run --name study wan.stackline >run.log ;;
            cc*) stackline client c >stackline_events.h && stackline client c --example >example.c ;;
        esac
    ",
};

const HOUSEKEEPING: Scene = Scene {
    commands: &[
        "completions",
        "man",
        "agent",
        "clean",
        "truth generate",
        "papers ncc",
        "papers reproduce",
    ],
    once: "mkdir -p .zfunc .config/fish/completions .local/share/bash-completion/completions",
    before: r"
        case $example in
            *'ncc last'*) stackline run --trace examples/arpanet.stackline >arpanet.log ;;
        esac
    ",
};

const NETWORKS: Scene = Scene {
    commands: &[
        "net show", "net exec", "net up", "net down", "net list", "net set", "net from",
    ],
    once: "",
    before: r"
        case $example in
            *'net up'*) ;;
            *mm-link*) printf '1\n5\n' >up.trace && cp up.trace down.trace ;;
            *'net exec wan '* | *'net set wan '* | *'net down'*) stackline net up wan.stackline >up.log ;;
        esac
    ",
};

const PROGRAMS: Scene = Scene {
    commands: &["trace", "watch"],
    once: r"
        printf '#!/bin/sh\nexec python3 -m http.server 8000\n' >server
        printf '#!/bin/sh\nuntil curl -s http://127.0.0.1:8000/; do sleep 0.1; done\n' >client
        chmod +x server client
    ",
    before: r"
        python3 -m http.server 8080 >http.log 2>&1 &
        until curl -s -o page http://127.0.0.1:8080/; do sleep 0.1; done
        case $example in
            *'--on wan.stackline'*) sed -i 's/khons/client/g; s/udjat/web/g' wan.stackline ;;
            *'--pid 4242'*) echo 4241 >/proc/sys/kernel/ns_last_pid
                python3 -m http.server 8081 >pid.log 2>&1 &
                until curl -s -o page http://127.0.0.1:8081/; do sleep 0.1; done ;;
            *'lifelines last'*) stackline run --trace wan.stackline >run.log ;;
        esac
    ",
};

const BLOCKS: Scene = Scene {
    commands: &[
        "papers blocks key",
        "papers blocks master",
        "papers blocks serve",
        "papers blocks load",
        "papers blocks get",
        "papers blocks list",
        "papers blocks delete",
        "papers blocks gateway",
        "papers blocks replay",
    ],
    once: r"
        head -c 5000000 /dev/urandom >big.tar
        mkdir photos && cp big.tar photos/one
        stackline display bench --trials 1 --picture vectors --png drawn >bench.log
        cp drawn/vectors.png kansas.tif
        cp wan.stackline lan.stackline
    ",
    before: r"
        mkdir -p run.data
        case $example in
            *' --across '* | *'blocks key'* | *'blocks master'*) ;;
            *)
                listen=127.0.0.1:7480
                case $example in *10.0.0.5*) listen=10.0.0.5:7480 ;; esac
                stackline blocks key >key.log
                stackline blocks master --data run.data --listen $listen >master.log &
                until [ -s master.log ]; do sleep 0.1; done
                truncate -s 200M first.bytes second.bytes disk.bytes
                stackline blocks serve --master $listen --name one --disk first.bytes --listen ${listen%:*}:0 >one.log &
                stackline blocks serve --master $listen --name two --disk second.bytes --listen ${listen%:*}:0 >two.log &
                until [ -s one.log ] && [ -s two.log ]; do sleep 0.1; done
                loaded() {
                    case $example in
                        'stackline blocks load'*) ;;
                        *get\ $1* | *replay\ $1* | *delete\ $1* | */$1*)
                            stackline blocks load $* --master $listen >load.log ;;
                    esac
                }
                case $example in
                    curl*) stackline blocks gateway --master $listen >gateway.log &
                        until [ -s gateway.log ]; do sleep 0.1; done ;;
                    */srv/*) mount -t tmpfs none /srv && mkdir /srv/a /srv/b ;;
                esac
                loaded backup big.tar
                loaded photos photos
                loaded map terrain:500x300:7
                loaded kansas terrain:1000x1000:7
                ;;
        esac
    ",
};

const DISPLAYS: Scene = Scene {
    commands: &[
        "papers display serve",
        "papers display bench",
        "papers display factors",
        "papers display view",
        "papers display agent",
        "papers display terminal",
        "papers display telnet",
        "papers display internet",
        "papers display vserver",
        "papers display execute",
    ],
    once: "sed 's/host khons, udjat;/host vax, sun { work 0.1 ms per message; }/; s/khons/vax/g; s/udjat/sun/g; s/wan/lan/g' wan.stackline >lan.stackline",
    before: r"
        serve() {
            stackline display $1 >$2.log 2>&1 &
            until [ -s $2.log ]; do sleep 0.1; done
        }
        case $example in
            *'display serve'* | *' --across '*) ;;
            *'view unix:'*) serve 'serve --view unix:view.socket' display ;;
            *'display view'*) serve 'serve --view 127.0.0.1:7086' display ;;
            *) serve serve display ;;
        esac
        case $example in
            *telnet*pup:*) serve 'terminal --listen pup:127.0.0.1:7023 -- date' terminal ;;
            *telnet*--to*) serve 'terminal -- stackline display bench --trials 1 --to tty' terminal ;;
            *telnet*) serve 'terminal -- date' terminal ;;
            *execute*) serve 'vserver -- stackline display bench --trials 1 --to pipe' vserver ;;
        esac
    ",
};

const SCENES: [&Scene; 6] = [
    &RESULTS,
    &HOUSEKEEPING,
    &NETWORKS,
    &PROGRAMS,
    &BLOCKS,
    &DISPLAYS,
];

/// Examples that cannot run here, by how they begin, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "stackline reproduce blast --pictures",
        "minutes without optimization; `reproduce` has tests of its own",
    ),
    (
        "stackline bufferbloat https",
        "no such server; tests of its own have one",
    ),
    (
        "stackline query ",
        "its engine is another program, which takes an hour to build",
    ),
    (
        "stackline trace --container ",
        "no container; other tests have stand-ins of the runtimes",
    ),
    (
        "STACKLINE_SNMP_COMMUNITY=",
        "no switch; another test has an agent of its own",
    ),
    (
        "stackline blocks serve --disk /dev/nvme",
        "no disk to overwrite",
    ),
    (
        "stackline clean",
        "programs outside its namespace would seem to have ended; another test cleans",
    ),
    ("sudo stackline clean", "the same"),
    (
        "stackline net exec wan.stackline khons -- bash",
        "a shell for a person",
    ),
];

/// Examples that serve until they are interrupted, by how they begin.
const SERVE: &[&str] = &[
    "stackline watch #",
    "stackline watch --keep",
    "stackline watch --listen",
    "stackline net exec wan.stackline udjat -- python3",
    "stackline blocks master",
    "stackline blocks serve",
    "stackline blocks gateway",
    "stackline agent --listen",
    "stackline display serve",
    "stackline display view",
    "stackline display agent",
    "stackline display internet",
    "stackline display terminal",
    "stackline display vserver",
];

/// Programs that examples name and that are stood in for.
const STAND_INS: &[(&str, &str)] = &[
    ("sudo", "#!/bin/sh\nexec \"$@\"\n"),
    (
        "ssh",
        "#!/bin/sh\nwhile [ $# -gt 0 ] && [ \"$1\" != stackline ]; do shift; done\nexec \"$@\"\n",
    ),
    ("xdg-open", "#!/bin/sh\nexit 0\n"),
];

const WAN: &str = "\
network wan {
  host khons, udjat;
  switch edge;
  link khons - edge 10 Mbit/s 5 ms loss 0.1%;
  link edge - udjat 100 Mbit/s 1 ms loss 0.1%;
}

2 from khons to udjat rr 32*120 over tcp across wan in simulated;
";

/// Runs `$example` in a network, with processes and a directory `/run` of its own; fails with its exit code.
const RUN: &str = r#"
    set -e
    ip link set lo up
    ip address add 10.0.0.5/32 dev lo
    ip address add 10.0.0.6/32 dev lo
    mount -t tmpfs none /run
    eval "$before"
    set +e
    if [ "$serves" = no ]; then
        timeout 100 bash -c "$example" </dev/null
        exit
    fi
    # Interrupted once it has printed something; the shell must not make it deaf to that.
    set -m
    bash -c "exec ${example%%#*}" </dev/null >served.log 2>&1 &
    for try in $(seq 600); do
        if [ -s served.log ] || [ -d stackline-runs/*-night ] || ! kill -0 $!; then break; fi
        sleep 0.1
    done
    kill -INT $!
    wait $!
    code=$?
    cat served.log
    [ $code = 0 ] || [ $code = 130 ]
"#;

/// The example in a copy of the scene's directory.
fn run(scene: &Scene, base: &Place, example: &str) -> Result<(), String> {
    let place = Place::new();
    let copied = Command::new("cp")
        .arg("-a")
        .arg(base.path("."))
        .arg(place.path("."))
        .status();
    assert!(copied.unwrap().success());
    let serves = SERVE.iter().any(|begins| example.starts_with(begins));
    let output = in_namespaces(&place, RUN)
        .env("before", scene.before)
        .env("example", example)
        .env("serves", if serves { "yes" } else { "no" })
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{example}: {}\n{out}{err}", output.status))
}

/// A shell with the program under test and the stand-ins on its path. Whatever it starts ends with it.
fn in_namespaces(place: &Place, script: &str) -> Command {
    let mut shell = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        shell.arg("--map-root-user");
    }
    shell
        .args([
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "timeout",
            "--kill-after=10",
            "300",
            "bash",
            "-c",
            script,
        ])
        .current_dir(place.path(""))
        .env("HOME", place.path(""))
        .env(
            "PATH",
            format!(
                "{}:{}",
                place.path(".local/bin").display(),
                std::env::var("PATH").unwrap()
            ),
        )
        .env("STACKLINE_SSH", place.path(".local/bin/ssh"))
        .env_remove("STACKLINE_RUNS");
    shell
}

/// The directory that the examples of a scene find.
fn made(scene: &Scene) -> Place {
    let place = Place::new();
    place.write("wan.stackline", WAN);
    for (name, text) in STAND_INS {
        place.script(&format!(".local/bin/{name}"), text);
    }
    std::os::unix::fs::symlink(program(), place.path(".local/bin/stackline")).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    std::os::unix::fs::symlink(examples, place.path("examples")).unwrap();
    let output = in_namespaces(&place, &format!("set -e; {}", scene.once))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    place
}

/// The examples of a command, as its help has them, continued lines joined.
fn examples(command: &str) -> Vec<String> {
    let place = Place::new();
    let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
    let help = place.stackline(&words).out;
    let after = help.split("Examples:\n").nth(1).unwrap_or_default();
    let lines = after.split("\n\n").next().unwrap().replace("\\\n", "");
    lines
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.starts_with('#'))
        .filter(|line| !LEFT_OUT.iter().any(|(begins, _)| line.starts_with(begins)))
        .collect()
}

fn play(scene: &Scene) {
    let base = made(scene);
    let lines: Vec<String> = scene
        .commands
        .iter()
        .flat_map(|command| examples(command))
        .collect();
    assert!(lines.len() >= 2 * scene.commands.len(), "{lines:?}");
    let failed: Vec<String> = lines
        .iter()
        .filter_map(|line| run(scene, &base, line).err())
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        lines.len(),
        failed.join("\n")
    );
}

#[test]
fn of_results() {
    play(&RESULTS);
}

#[test]
fn of_housekeeping() {
    play(&HOUSEKEEPING);
}

#[test]
fn of_networks() {
    play(&NETWORKS);
}

#[test]
fn of_programs() {
    play(&PROGRAMS);
}

#[test]
fn of_blocks() {
    play(&BLOCKS);
}

#[test]
fn of_displays() {
    play(&DISPLAYS);
}

#[test]
fn every_command_is_in_a_scene() {
    let reference = include_str!("../../../../../docs/reference/commands.md");
    let commands = reference
        .lines()
        .filter_map(|line| line.strip_prefix("## stackline "));
    let lacking: Vec<&str> = commands
        .filter(|command| *command != "query")
        .filter(|command| {
            // Examples of a command with commands below it may be those of these.
            let below = format!("{command} ");
            let is_there = |known: &&str| known == command || known.starts_with(&below);
            !SCENES
                .iter()
                .any(|scene| scene.commands.iter().any(&is_there))
        })
        .collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
