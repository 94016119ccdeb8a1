use std::path::Path;

use super::super::read_markdown;
use super::*;

const TABLE: &str = "CREATE TABLE assistants (id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT,
    system_prompt TEXT NOT NULL, mcp_config TEXT NOT NULL, allowed_builtin_service_aliases TEXT, tags TEXT NOT NULL,
    source TEXT NOT NULL, path TEXT, content_hash TEXT NOT NULL, definition TEXT NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, deleted_at INTEGER) STRICT";

fn definition(name: &str, prompt: &str) -> Definition {
    let text = format!("---\nname: {name}\ndescription: Does it\ntools: [a, b]\n---\n{prompt}");
    read_markdown(text.as_bytes(), Path::new("x.md"), Source::Project).expect("a definition")
}

fn id(text: &str) -> AssistantId {
    text.parse().expect("an id")
}

fn table() -> Connection {
    let db = Connection::open_in_memory().expect("a database");
    db.execute_batch(TABLE).expect("the table");
    db
}

/// Every row, as `id source created updated deleted`.
fn rows(db: &Connection) -> Vec<String> {
    let sql = "SELECT id || ' ' || source || ' ' || created_at || ' ' || updated_at || ' ' || coalesce(deleted_at, '-')
               FROM assistants ORDER BY id";
    let mut select = db.prepare(sql).expect("a query");
    select.query_map([], |row| row.get(0)).expect("rows").map(|row| row.expect("a row")).collect()
}

#[test]
fn follows_the_files() {
    let (db, followed) = (table(), table());
    let mut before = Registry::default();
    let mut check = |now, definitions: &[(&str, &str)], counts: [usize; 5], expected: &[&str]| {
        let registry = Registry::from_definitions(definitions.iter().map(|(name, prompt)| definition(name, prompt)));
        let found = mirror(&db, &registry, now).expect("mirrored");
        let [added, changed, revived, deleted, unchanged] = counts;
        assert_eq!(found, MirrorSummary { added, changed, revived, deleted, unchanged });
        assert_eq!(rows(&db), expected);
        let difference = Difference::between(&before, &registry);
        assert_eq!(difference.is_empty(), [added, changed, revived, deleted] == [0; 4]);
        let found = follow(&followed, &difference, now).expect("followed");
        assert_eq!(
            found,
            MirrorSummary { added, changed, revived, deleted, unchanged: 0 },
            "only what differs is seen"
        );
        assert_eq!(rows(&followed), expected);
        before = registry;
    };
    check(1, &[("a", "1"), ("b", "1")], [2, 0, 0, 0, 0], &["a project 1 1 -", "b project 1 1 -"]);
    check(2, &[("a", "1"), ("b", "2")], [0, 1, 0, 0, 1], &["a project 1 1 -", "b project 1 2 -"]);
    check(3, &[("b", "2")], [0, 0, 0, 1, 1], &["a project 1 3 3", "b project 1 2 -"]);
    check(4, &[("b", "2")], [0, 0, 0, 0, 1], &["a project 1 3 3", "b project 1 2 -"]);
    check(5, &[("a", "1"), ("c", "1")], [1, 0, 1, 1, 0], &["a project 1 5 -", "b project 1 5 5", "c project 5 5 -"]);
    let deleted = row(&db, &"b".parse().expect("an id")).expect("a row").expect("kept");
    assert_eq!(deleted, definition("b", "2"));
}

#[test]
fn leaves_the_databases_own_alone() {
    let db = table();
    put(&db, &definition("own", "1"), 1).expect("put");
    put(&db, &definition("both", "1"), 1).expect("put");
    let registry = Registry::from_definitions([definition("both", "2")]);
    assert_eq!(mirror(&db, &registry, 2).expect("mirrored"), MirrorSummary::default());
    assert_eq!(rows(&db), ["both database 1 1 -", "own database 1 1 -"]);
    let all = stored(&db).expect("stored");
    assert_eq!(all.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["both", "own"]);
    let joined = registry.join(all.into_iter().map(std::sync::Arc::new));
    assert_eq!(joined.find_exact("both").expect("both").system_prompt, "2", "files come first");
    assert_eq!(mirror(&db, &joined, 3).expect("mirrored"), MirrorSummary::default());
    assert!(Difference::between(&registry, &joined).is_empty(), "the database's own are no files");
    let without = Registry::default().join([Arc::new(kept(&db, &id("both")).expect("a row").expect("own"))]);
    for (old, new) in [(&joined, &without), (&without, &joined)] {
        let difference = Difference::between(old, new);
        assert!(!difference.is_empty());
        assert_eq!(follow(&db, &difference, 3).expect("followed"), MirrorSummary::default());
    }

    put(&db, &definition("own", "3"), 4).expect("put");
    assert_eq!(stored(&db).expect("stored")[1].system_prompt, "3");
    assert_eq!([delete(&db, &id("own"), 5), delete(&db, &id("own"), 6)], [Ok(true), Ok(false)]);
    assert_eq!(rows(&db), ["both database 1 1 -", "own database 1 5 5"]);
    assert_eq!(stored(&db).expect("stored").len(), 1);
    assert_eq!(kept(&db, &id("own")), Ok(None));
}

#[test]
fn a_row_that_is_no_definition_is_left_out() {
    let db = table();
    put(&db, &definition("good", "1"), 1).expect("put");
    put(&db, &definition("bad", "1"), 1).expect("put");
    db.execute("UPDATE assistants SET definition = '{}' WHERE id = 'bad'", []).expect("an update");
    assert_eq!(stored(&db).expect("stored").len(), 1);
    row(&db, &"bad".parse().expect("an id")).expect_err("no definition");
}
