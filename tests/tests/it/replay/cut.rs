//! Records that are not whole: cut, not there yet, not there any more, or full.

use assistant_host::replay::{NoReplay, Recording, Step};
use assistant_protocol::ids::ProcessId;

use super::{bed, fake, id, play};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_whole_is_told() {
    let mut bed = bed();
    bed.limits.running_per_session = 1;
    let client = bed.open().await;
    let hangs = client.spawn("hangs", "go").await;
    let waiting = client.spawn("leaf", "go").await;
    let seen = async {
        // Behind the second model call nothing comes.
        loop {
            let recording = Recording::read(&bed.state(), id(&hangs));
            let asked = |step: &Step| matches!(step, Step::ModelAsked(asked) if asked.call == 1);
            match recording {
                Ok(recording) if recording.steps.iter().any(asked) => return recording,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    let living = tokio::time::timeout(conformance::bed::SOON, seen).await.expect("it asks twice");
    let report = play(&living, &bed.runner).await;
    assert!(report.identical() && !report.complete, "{report}");
    assert_eq!((report.model_calls, report.tool_calls, report.runs), (2, 1, 0));
    assert!(report.to_string().contains("The record ends before the last run was answered (the process was running)."));
    let never = Recording::read(&bed.state(), id(&waiting)).expect_err("it waits");
    assert!(matches!(never, NoReplay::NeverRun { status: "queued", .. }), "{never}");
    let unknown = Recording::read(&bed.state(), ProcessId::mint()).expect_err("there is none");
    assert!(matches!(unknown, NoReplay::Unknown(_)), "{unknown}");
    let nowhere = Recording::read(&bed.project(), id(&hangs)).expect_err("there is no store");
    assert!(matches!(nowhere, NoReplay::Unknown(_)), "{nowhere}");
    client.host.close().await;
    // A copy is cut: the bed looks through its own store at the end.
    let copy = bed.dir.path().join("copy");
    std::fs::create_dir(&copy).expect("a folder");
    let file = copy.join("assistant-host.db");
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    db.execute("VACUUM INTO ?1", [file.to_string_lossy()]).expect("a copy");
    let db = rusqlite::Connection::open(file).expect("the copy");
    let cut = |sql: &str, told: &str| {
        db.execute(sql, []).expect("done");
        let error = Recording::read(&copy, id(&hangs)).expect_err("it is cut").to_string();
        assert!(error.contains(told), "{error}");
    };
    cut("DELETE FROM events WHERE kind = 'run'", "the record lacks its beginning: its log is removed in part");
    let unnumbered = "UPDATE events SET data = json_remove(data, '$.call') WHERE kind = 'model_call'";
    cut(unnumbered, "was run by an earlier version, which did not record enough to play it again");
    cut("DELETE FROM events WHERE kind = 'model_call'", "was never run (it is cancelled)");
    cut("DELETE FROM events", "the record lacks all that it did: its log is removed already");
}

/// Whatever a runner asks: its record has a bound.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_recorded_up_to_a_bound() {
    let bed = fake("flood-unknown-tools");
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.end(&spawned).await;
    client.host.close().await;
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    let sql = "SELECT count(*) FROM events WHERE kind = 'asked'";
    assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a count"), 1_001);
    let recording = Recording::read(&bed.state(), id(&spawned)).expect("a recording");
    let answered = |step: &&Step| matches!(step, Step::ToolAnswered { .. });
    assert_eq!((recording.steps.iter().filter(answered).count(), recording.complete()), (1_000, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_is_played_as_far_as_it_goes() {
    let bed = bed();
    let client = bed.open().await;
    let spawned = client.spawn("reads", "go").await;
    client.end(&spawned).await;
    client.host.close().await;
    let whole = Recording::read(&bed.state(), id(&spawned)).expect("a recording");
    for length in 1..=whole.steps.len() {
        let cut = Recording { steps: whole.steps[..length].to_vec(), ..whole.clone() };
        let report = play(&cut, &bed.runner).await;
        assert!(report.identical(), "{length} steps: {report}");
        assert_eq!(report.complete, length == whole.steps.len(), "{length} steps");
    }
}
