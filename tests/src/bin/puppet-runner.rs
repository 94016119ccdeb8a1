//! A runner that a test plays by hand: `puppet-runner SOCKET` passes its stdin and stdout on, byte for byte (see
//! `conformance::puppets`). It ends when one of the two ends.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else { return ExitCode::from(2) };
    let Ok(hand) = std::os::unix::net::UnixStream::connect(path) else { return ExitCode::from(3) };
    let Ok(mut strings) = hand.try_clone() else { return ExitCode::from(3) };
    std::thread::spawn(move || {
        let copied = std::io::copy(&mut std::io::stdin().lock(), &mut strings);
        let shut = strings.shutdown(std::net::Shutdown::Write);
        std::process::exit(if copied.is_ok() && shut.is_ok() { 0 } else { 4 });
    });
    let mut hand = hand;
    match std::io::copy(&mut hand, &mut std::io::stdout()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(4),
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
