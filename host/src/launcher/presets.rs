//! The presets of `[launchers.NAME]`: what is run, at a glance.

use super::by::{Files, Servers};

/// When a row of a preset is part of what is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// `network = true`.
    Network,
    /// `network = false`, which is the default.
    NoNetwork,
    /// `namespace` is given.
    Namespace,
    /// The users of this machine have numbers.
    Unix,
    /// The process has a working folder.
    Dir,
}

/// A setting that some presets have and others have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `network`
    Network,
    /// `write`
    Write,
    /// `bind`, `bind_read`
    Bind,
    /// `bring`
    Bring,
    /// `image`, which has to be given.
    Image,
    /// `host`, which has to be given.
    Host,
    /// `namespace`
    Namespace,
    /// `options`
    Options,
    /// `dir`
    Dir,
}

/// A launcher that can be had by a name.
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// What brings its program, where that is not here.
    pub install: &'static str,
    /// The words of the command, without a shell: blanks part them, placeholders are filled in.
    pub argv: &'static [(When, &'static str)],
    /// What ends a process that was killed here and may live on there.
    pub kill: &'static [(When, &'static str)],
    /// What can be said of it.
    pub takes: &'static [Setting],
    /// Where its working folder is.
    pub files: Files,
    /// What becomes of tool servers that only this process has.
    pub servers: Servers,
    /// Where the runner is, unless `runner` says so; none is where it is here.
    pub runner: Option<&'static str>,
    /// Whether it only starts when something was reached over a network, or fetched.
    pub slow: bool,
}

use Setting::{Bind, Bring, Host, Image, Namespace, Network, Options, Write};
use When::{Always, NoNetwork};

/// All presets.
///
/// * `bwrap` (bubblewrap) shows the machine read-only, without the folders of users, `/run`, other programs, the network and
///   what is the host's own (`{mounts}`); it ends with the host.
/// * `podman` and `docker` bring the runner into the image, unless `runner` says where it is there. A runner that needs
///   no library of the image is a static one.
/// * `ssh` keeps one connection for all processes, and its socket where nobody else may enter. The far shell is given one
///   line, every word quoted.
/// * `kubectl` is one pod a process, `srun` one job step.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "local",
        install: "",
        argv: &[(Always, "{runner}")],
        kill: &[],
        takes: &[],
        files: Files::Here,
        servers: Servers::Outside,
        runner: None,
        slow: false,
    },
    Preset {
        name: "bwrap",
        install: "install bubblewrap (the package `bubblewrap` of most systems)",
        argv: &[
            (Always, "bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL"),
            (When::Network, "--share-net"),
            (Always, "--ro-bind / / --dev /dev --proc /proc {mounts}"),
            (Always, "--setenv TMPDIR /tmp"),
            (When::Dir, "--chdir {dir}"),
            (Always, "{options} -- {runner}"),
        ],
        kill: &[],
        takes: &[Network, Write, Bind, Options],
        files: Files::Here,
        servers: Servers::Inside,
        runner: None,
        slow: false,
    },
    Preset {
        name: "podman",
        install: "install podman",
        argv: &[
            (Always, "podman run --rm --interactive --name {name}"),
            (NoNetwork, "--network none"),
            (Always, "--read-only --tmpfs /tmp --cap-drop=all --security-opt no-new-privileges"),
            (Always, "--env={variable} {volumes}"),
            (When::Dir, "--workdir {dir}"),
            (Always, "{options} --entrypoint= {image} {runner}"),
        ],
        kill: &[(Always, "podman rm --force --ignore --time 0 --volumes {name}")],
        takes: &[Network, Write, Bind, Bring, Image, Options],
        files: Files::Here,
        servers: Servers::Withheld,
        runner: Some(BROUGHT),
        slow: true,
    },
    Preset {
        name: "docker",
        install: "install docker, and let its daemon run",
        argv: &[
            (Always, "docker run --rm --interactive --init --name {name}"),
            // Without capabilities its root may do less in folders of this user than this user.
            (When::Unix, "--user={user}"),
            (NoNetwork, "--network none"),
            (Always, "--read-only --tmpfs /tmp --cap-drop=all --security-opt no-new-privileges"),
            (Always, "--env={variable} {volumes}"),
            (When::Dir, "--workdir {dir}"),
            (Always, "{options} --entrypoint= {image} {runner}"),
        ],
        kill: &[(Always, "docker rm --force --volumes {name}")],
        takes: &[Network, Write, Bind, Bring, Image, Options],
        files: Files::Here,
        servers: Servers::Withheld,
        runner: Some(BROUGHT),
        slow: true,
    },
    Preset {
        name: "ssh",
        install: "install an OpenSSH client",
        argv: &[
            // Of what is said twice, ssh takes the first.
            (
                Always,
                "ssh -T {options} -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4",
            ),
            (Always, "-o ControlMaster=auto -o ControlPath={private}/{tag}-%C -o ControlPersist=60"),
            (Always, "-- {host} {shell}"),
        ],
        // What runs there ends when its stdin does.
        kill: &[],
        takes: &[Host, Options, Setting::Dir],
        files: Files::Elsewhere,
        servers: Servers::Withheld,
        runner: Some(IN_PATH),
        slow: true,
    },
    Preset {
        name: "kubectl",
        install: "install kubectl, and give it a cluster (`kubectl config current-context`)",
        argv: &[
            (Always, "kubectl run {name} --quiet --stdin --rm --restart=Never --image={image} --env={env}"),
            (When::Namespace, "--namespace={namespace}"),
            (Always, "{options} --command -- {runner}"),
        ],
        kill: &[
            (Always, "kubectl delete pod {name} --ignore-not-found --now --wait=false"),
            (When::Namespace, "--namespace={namespace}"),
        ],
        takes: &[Image, Namespace, Options],
        files: Files::Elsewhere,
        servers: Servers::Withheld,
        runner: Some(IN_PATH),
        slow: true,
    },
    Preset {
        name: "srun",
        install: "use a machine of a Slurm cluster from which jobs can be started",
        argv: &[
            (Always, "srun --ntasks=1 --quiet --unbuffered --job-name={name} --export=PATH,LANG,{variables}"),
            (When::Dir, "--chdir={dir}"),
            (Always, "{options} {runner}"),
        ],
        kill: &[(Always, "scancel --quiet --name={name}")],
        takes: &[Options, Setting::Dir],
        files: Files::Elsewhere,
        servers: Servers::Withheld,
        runner: Some(IN_PATH),
        slow: true,
    },
];

/// Where a runner is that was brought into a container.
///
/// No image has anything there.
pub const BROUGHT: &str = "/assistant-runner-of-the-host";
/// Our runner, looked up over there.
const IN_PATH: &str = "assistant-runner";

/// The preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The names of all presets, for messages.
#[must_use]
pub fn names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}
