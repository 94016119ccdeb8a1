//! Slots, played back from the log: who held one when another started.

use std::collections::HashMap;

use super::book::{Book, Process, ends};

/// Where each process is at one place of the log.
struct Play<'a> {
    book: &'a Book,
    now: Vec<Option<&'a str>>,
    children: Vec<Vec<usize>>,
}

pub(super) fn check(book: &Book, wrong: &mut Vec<String>) {
    let mut moves: Vec<(i64, usize, &str)> = Vec::new();
    for (at, process) in book.processes.iter().enumerate() {
        moves.extend(process.moves().map(|(seq, status)| (seq, at, status)));
    }
    moves.sort_unstable();
    let mut play = Play { book, now: vec![None; book.processes.len()], children: children(book) };
    let mut trees: HashMap<&str, i64> = HashMap::new();
    for (seq, at, status) in moves {
        let process = &book.processes[at];
        let mut bad = |what: String| wrong.push(format!("process {} at event {seq}: {what}", process.id));
        if play.now[at].is_none() {
            play.spawned(process, status, &mut bad);
            let spawned = trees.entry(&process.root).or_default();
            *spawned += 1;
            if *spawned > process.limit("spawns_per_tree") {
                bad(format!("is number {spawned} of its tree"));
            }
        }
        if status == "starting" {
            play.starts(at, &mut bad);
        }
        play.now[at] = Some(status);
    }
}

/// The children of each process. A detached one that was passed on counts as a child of all who may have been its parent.
fn children(book: &Book) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); book.processes.len()];
    for (at, process) in book.processes.iter().enumerate() {
        match &process.parent {
            Some(parent) => children[book.at[parent]].push(at),
            None if process.depth > 1 => {
                let may = |one: &Process| one.root == process.root && one.depth + 1 == process.depth && one.ended();
                let parents = book.processes.iter().enumerate().filter(|(_, one)| may(one));
                for (parent, _) in parents {
                    children[parent].push(at);
                }
            }
            None => {}
        }
    }
    children
}

impl Play<'_> {
    fn lives(&self, at: usize) -> bool {
        self.now[at].is_some_and(|status| !ends(status))
    }

    /// How many hold a slot while `starting` begins: starting or running, and no unfinished child.
    fn used(&self, session: Option<&str>, starting: usize) -> i64 {
        let holds = |at: &usize| {
            let process = &self.book.processes[*at];
            session.is_none_or(|session| session == process.session)
                && matches!(self.now[*at], Some("starting" | "running"))
                && !self.children[*at].iter().any(|child| *child == starting || self.lives(*child))
        };
        (0..self.now.len()).filter(holds).count() as i64
    }

    fn starts(&self, at: usize, bad: &mut impl FnMut(String)) {
        let process = &self.book.processes[at];
        for (session, limit) in [(Some(process.session.as_str()), "running_per_session"), (None, "running_per_host")] {
            let used = self.used(session, at);
            if used >= process.limit(limit) {
                bad(format!("starts while {used} hold a slot ({limit} {})", process.limit(limit)));
            }
        }
        let older = self.book.processes.iter().enumerate().find(|(other, one)| {
            one.session == process.session
                && one.seq < process.seq
                && self.now[*other] == Some("queued")
                && self.ahead(one).is_none()
        });
        if let Some(ahead) = self.ahead(process) {
            bad(format!("starts before {} of its line has ended", ahead.id));
        }
        if let Some((_, older)) = older {
            bad(format!("starts before {}, which queued earlier", older.id));
        }
    }

    /// An older process of the same line that lives.
    fn ahead(&self, process: &Process) -> Option<&Process> {
        let line = process.line.as_ref()?;
        let ahead = |at: &usize| {
            let one = &self.book.processes[*at];
            (one.line.as_ref(), &one.assistant) == (Some(line), &process.assistant)
                && one.seq < process.seq
                && self.lives(*at)
        };
        (0..self.now.len()).find(ahead).map(|at| &self.book.processes[at])
    }

    fn spawned(&self, process: &Process, status: &str, bad: &mut impl FnMut(String)) {
        let of_session = |at: &usize| self.book.processes[*at].session == process.session;
        let living = (0..self.now.len()).filter(of_session).filter(|at| self.lives(*at)).count() as i64;
        if living >= process.limit("living_per_session") {
            bad(format!("is spawned while {living} of its session live"));
        }
        let queued = (0..self.now.len()).filter(of_session).filter(|at| self.now[*at] == Some("queued")).count() as i64;
        if status == "queued" && queued >= process.limit("queue_per_session") {
            bad(format!("is queued behind {queued} of its session"));
        }
    }
}
