//! What is put away, what stays, and what is told of it.

use base64::engine::general_purpose::STANDARD;

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand so on";

fn limits() -> Limits {
    Limits { answer_chars: 40, blob_bytes: 1_000, ..Limits::default() }
}

fn image(mime_type: &str, data: &str) -> Part {
    Part::Image { mime_type: mime_type.into(), data: Some(data.into()), blob: None }
}

/// The parts as lines, each handle as the place of its blob among those that are kept.
fn told(away: &Away) -> Vec<String> {
    let lines = away.parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        other => serde_json::to_string(other).expect("JSON"),
    });
    let short = |line: String| {
        let numbered = |line: String, (number, blob): (usize, &Blob)| {
            line.replace(&blob.handle().to_string(), &format!("BLOB{number}"))
        };
        away.blobs.iter().enumerate().fold(line, numbered)
    };
    lines.map(short).collect()
}

fn check(parts: &[Part], lost: Option<&str>, want: &[&str], kept: &[&[u8]]) {
    let away = put_away(&Given::of_tool(parts.to_vec(), &limits()), lost);
    assert_eq!(told(&away), want);
    assert_eq!(away.blobs.iter().map(|blob| blob.bytes.as_slice()).collect::<Vec<_>>(), kept);
}

#[test]
fn pictures_and_files_become_handles() {
    let png = STANDARD.encode(PNG);
    let shown = r#"{"type":"image","mime_type":"image/png","blob":"BLOB0"}"#;
    let line = "[picture, image/png, 17 bytes: BLOB0]";
    check(&[image("image/png", &png)], None, &[line, shown], &[PNG]);
    check(&[image("image/jpeg", &png), image("", &png)], None, &[line, shown, line, shown], &[PNG]);
    check(&[image("image/png", &png[..png.len() - 1])], None, &[line, shown], &[PNG]);
    check(&[image("image/png", &format!("{}\r\n{}", &png[..8], &png[8..]))], None, &[line, shown], &[PNG]);
    check(&[image("image/png", "AAAA")], None, &["[picture, application/octet-stream, 3 bytes: BLOB0]"], &[&[0, 0, 0]]);
    check(&[image("image/png", "")], None, &["[a picture (image/png) without a byte]"], &[]);
    check(
        &[image("a\nb", "*no base64*")],
        None,
        &["[a picture (a b) that cannot be read: its data is no base64]"],
        &[],
    );
    check(
        &[image("image/png", &png)],
        Some("it is full"),
        &["[picture, image/png, 17 bytes, not kept: it is full]"],
        &[],
    );
    check(
        &[file("application/pdf", Some("a\nb.pdf"), &STANDARD.encode("%PDF"))],
        None,
        &["[file a b.pdf, application/pdf, 4 bytes: BLOB0]"],
        &[b"%PDF"],
    );
    check(&[file("", None, &png)], None, &["[file, image/png, 17 bytes: BLOB0]", shown], &[PNG]);
    let named = r#"{"type":"image","mime_type":"image/png","blob":"blob:0123456789abcdef"}"#;
    check(&[serde_json::from_str(named).expect("a part")], None, &[named], &[]);
}

#[test]
fn a_blob_has_a_bound() {
    let most = vec![7; 1_000];
    check(&[file("a/b", None, &STANDARD.encode(&most))], None, &["[file, a/b, 1000 bytes: BLOB0]"], &[&most]);
    let more = vec![7; 1_001];
    let why = "[file, a/b, 1001 bytes, not kept: limit blob_bytes: it has 1001 bytes, the most is 1000]";
    check(&[file("a/b", None, &STANDARD.encode(&more))], None, &[why], &[]);
}

#[test]
fn long_texts_keep_their_beginning_and_their_end() {
    let forty = "é".repeat(40);
    check(&[Part::text(&forty)], None, &[&forty], &[]);
    check(&[Part::text("")], None, &[""], &[]);
    let long = format!("{}{}{}", "a".repeat(30), "…".repeat(50), "z".repeat(10));
    let cut = format!(
        "{}\n[50 of 90 characters are left out here; the whole is kept as BLOB0, which read_blob reads from character 30 \
         on]\n{}",
        "a".repeat(30),
        "z".repeat(10)
    );
    check(&[Part::text(&long)], None, &[&cut], &[long.as_bytes()]);
    let lost = cut.replace("kept as BLOB0, which read_blob reads from character 30 on", "not kept: it is full");
    check(&[Part::text(&long)], Some("it is full"), &[&lost], &[]);
    // Nothing is left for a second one; a short one still fits into what is.
    let none = "\n[40 of 40 characters are left out here; the whole is kept as BLOB1, which read_blob reads from character 0 \
                on]\n";
    check(&[Part::text(&long), Part::text(&forty)], None, &[&cut, none], &[long.as_bytes(), forty.as_bytes()]);
    let told = put_away(&Given::of_tool(vec![Part::text("x".repeat(2_000))], &limits()), None);
    assert!(told.blobs.is_empty() && told.parts[0] != Part::text("x".repeat(2_000)), "{told:?}");
}

#[test]
fn a_flood_of_parts_is_cut() {
    let away = put_away(&Given::of_tool(vec![Part::text(""); 250], &limits()), None);
    assert_eq!(away.parts.len(), 101);
    assert_eq!(away.parts[100], Part::text("[150 more parts are left out: a result has 100 at most]"));
}

#[test]
fn of_what_a_model_says_only_pictures_are_put_away() {
    let long = Part::text("x".repeat(100));
    let other = Part::Unknown(json!({ "type": "never_heard_of", "a": 1 }));
    assert!(Given::of_content(&Content::Parts(vec![long.clone(), other.clone()]), &limits()).is_none());
    assert!(Given::of_content(&Content::Text("x".into()), &limits()).is_none());
    let said = Content::Parts(vec![long.clone(), image("image/png", &STANDARD.encode(PNG)), other.clone()]);
    let away = put_away(&Given::of_content(&said, &limits()).expect("a picture"), None);
    assert_eq!((&away.parts[0], &away.parts[3], away.parts.len(), away.blobs.len()), (&long, &other, 4, 1));
}
