use super::*;
use crate::config::Config;

/// What a launcher's command comes to, or what is wrong.
fn check(text: &str, expected: &str) {
    let env = |name: &str| (name == "HOME").then(|| "/h".to_owned());
    let read = Config::parse(text, Path::new("/c/config.toml")).and_then(|config| config.launchers(&env));
    let told = match read {
        Ok(launchers) => {
            let words =
                |one: &Launcher| one.argv.iter().flat_map(|row| row.words.clone()).collect::<Vec<_>>().join(" ");
            launchers.iter().map(|(name, one)| format!("{name}: {}", words(one))).collect::<Vec<_>>().join("; ")
        }
        Err(error) => error.to_string(),
    };
    assert!(told.contains(expected), "{text}: {told}");
}

#[test]
fn presets_come_to_commands() {
    check("", "");
    check("[launchers.a]\npreset = 'local'", "a: {runner}");
    let fence = "bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL";
    let rest = "--ro-bind / / --dev /dev --proc /proc {mounts} --setenv TMPDIR /tmp --chdir {dir}";
    check("[launchers.a]\npreset = 'bwrap'", &format!("a: {fence} {rest} -- {{runner}}"));
    check(
        "[launchers.a]\npreset = 'bwrap'\nnetwork = true\noptions = ['--uid', '1']",
        &format!("a: {fence} --share-net {rest} --uid 1 -- {{runner}}"),
    );
    check(
        "[launchers.a]\npreset = 'podman'\nimage = 'i:1'",
        "a: podman run --rm --interactive --name {name} --network none --read-only --tmpfs /tmp --cap-drop=all --security-opt \
         no-new-privileges --env={variable} {volumes} --workdir {dir} --entrypoint= i:1 {runner}",
    );
    check(
        "[launchers.a]\npreset = 'ssh'\nhost = 'me@far'\noptions = ['-p', '22']",
        "a: ssh -T -p 22 -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4 -o \
         ControlMaster=auto -o ControlPath={private}/9fa2ffdc-%C -o ControlPersist=60 -- me@far {shell}",
    );
    check(
        "[launchers.a]\npreset = 'kubectl'\nimage = 'i'\nnamespace = 'n'",
        "a: kubectl run {name} --quiet --stdin --rm --restart=Never --image=i --env={env} --namespace=n --command -- {runner}",
    );
    check("[launchers.a]\nargv = ['x', '--e={env}', '{runner}', 'y']", "a: x --e={env} {runner} y");
}

#[test]
fn faults_name_the_key() {
    check("default_launcher = 'local'", "");
    check("default_launcher = 'a'\n[launchers.a]\npreset = 'local'", "a: {runner}");
    check(
        "default_launcher = 'b'\n[launchers.a]\npreset = 'local'",
        "`default_launcher` cannot be used: no launcher is called `b`; there are: local, a; name one",
    );
    check("[launchers.a]", "`launchers.a` has neither a `preset` (local, bwrap, podman");
    check("[launchers.a]\npreset = 'local'\nargv = ['x', '{runner}']", "has both a `preset` and an `argv`");
    check(
        "[launchers.a]\npreset = 'bubblewrap'",
        "`launchers.a.preset` is none that there is; there are: local, bwrap",
    );
    check("[launchers.local]\npreset = 'bwrap'", "`launchers.local` has the name of what is there without a launcher");
    check("[launchers.'a b']\npreset = 'bwrap'", "is no name of a launcher");
    check("[launchers.a]\npreset = 'podman'", "`launchers.a` has no `image`, which its preset needs");
    check("[launchers.a]\npreset = 'ssh'", "has no `host`");
    check("[launchers.a]\npreset = 'ssh'\nhost = '-oProxyCommand=x'", "`launchers.a.host` is no name");
    check("[launchers.a]\npreset = 'ssh'\nhost = 'a b'", "`launchers.a.host` is no name");
    check("[launchers.a]\npreset = 'podman'\nimage = ''", "`launchers.a.image` is no name");
    check(
        "[launchers.a]\npreset = 'ssh'\nhost = 'h'\nwrite = true",
        "`launchers.a.write` goes with the presets bwrap, podman, docker only",
    );
    check("[launchers.a]\nargv = ['x', '{runner}']\nnetwork = true", "`launchers.a.network` goes with the presets");
    for preset in ["'local'", "'bwrap'", "'docker'\nimage = 'i'", "'kubectl'\nimage = 'i'"] {
        let text = format!("[launchers.a]\npreset = {preset}\ndir = '/d'");
        check(&text, "`launchers.a.dir` goes with the presets ssh, srun only");
    }
    check("[launchers.a]\npreset = 'srun'\ndir = '/d'", "a: srun");
    check("[launchers.a]\nargv = ['x', '{dir}', '{runner}']\ndir = '/d'", "a: x {dir} {runner}");
    check("[launchers.a]\nargv = ['x', '{mounts}', '{runner}']\nwrite = true", "a: x {mounts} {runner}");
    check("[launchers.a]\nargv = ['x']", "`launchers.a.argv` has no \"{runner}\"");
    check("[launchers.a]\nargv = ['x', '-c={runner}']", "stands alone");
    check(
        "[launchers.a]\nargv = ['x', '{runer}', '{runner}']",
        "`launchers.a.argv` has a word \"{runer}\" that has {runer}",
    );
    check("[launchers.a]\nargv = ['', '{runner}']", "names no program");
    check("[launchers.a]\nargv = ['x', '{runner}']\nkill = ['y', '{dir}']", "`launchers.a.kill` has a word \"{dir}\"");
    check("[launchers.a]\npreset = 'bwrap'\nenv = ['A=b']", "`launchers.a.env` has \"A=b\", which is no name");
    check("[launchers.a]\npreset = 'bwrap'\nlaunch_ms = 0", "`launchers.a.launch_ms` is 0");
    check("[launchers.a]\npreset = 'bwrap'\ncwd = '/'", "unknown field `cwd`");
    check(
        "[launchers.a]\npreset = 'bwrap'\nfiles = 'there'",
        "unknown variant `there`, expected `here` or `elsewhere`",
    );
    check("[launchers.a]\npreset = 'ssh'\nhost = 'h'\nservers = 'outside'", "`launchers.a.servers` is `outside`");
}

#[test]
fn presets_end_what_is_elsewhere() {
    let check = |written: &str, expected: &str| {
        let config =
            Config::parse(&format!("[launchers.a]\n{written}"), Path::new("/c.toml")).expect("a configuration");
        assert_eq!(config.launcher("a", &|_| None).expect("a launcher").kill.join(" "), expected, "{written}");
    };
    check("preset = 'bwrap'", "");
    check("preset = 'podman'\nimage = 'i'", "podman rm --force --ignore --time 0 --volumes {name}");
    check("preset = 'docker'\nimage = 'i'", "docker rm --force --volumes {name}");
    let pod = "kubectl delete pod {name} --ignore-not-found --now --wait=false";
    check("preset = 'kubectl'\nimage = 'i'", pod);
    check("preset = 'kubectl'\nimage = 'i'\nnamespace = 'n'", &format!("{pod} --namespace=n"));
    check("preset = 'srun'\nkill = ['x', '{name}']", "x {name}");
}

#[test]
fn paths_are_those_of_the_file() {
    let env = |name: &str| (name == "HOME").then(|| "/h".to_owned());
    let text = "[launchers.a]\npreset = 'bwrap'\nbind = ['~/.x', 'y']\nbind_read = ['/z']";
    let config = Config::parse(text, Path::new("/c/config.toml")).expect("a configuration");
    let launcher = config.launcher("a", &env).expect("a launcher");
    assert_eq!(launcher.bind, [PathBuf::from("/h/.x"), PathBuf::from("/c/y")]);
    assert_eq!(launcher.bind_read, [PathBuf::from("/z")]);
    assert_eq!((launcher.files, launcher.servers), (Files::Here, Servers::Inside));
    assert_eq!(launcher.within(10_000).as_millis(), 10_000);
}
