//! Blobs: none is kept for nobody, and none is missing.

use super::book::Book;

pub(super) fn check(book: &Book, wrong: &mut Vec<String>) {
    for (hash, fits) in &book.blobs {
        if !fits {
            wrong.push(format!("blob {hash}: its bytes have another hash"));
        }
        if !book.uses.iter().any(|(_, used)| used == hash) {
            wrong.push(format!("blob {hash}: nobody uses it"));
        }
    }
    for (process, hash) in &book.uses {
        if !book.blobs.contains_key(hash) {
            wrong.push(format!("process {process} uses the blob {hash}, which is not there"));
        }
        if book.process(process).is_none() {
            wrong.push(format!("blob {hash}: it is used by {process}, which is not there"));
        }
    }
    let results = book.results.iter().map(|((process, _), result)| (process, &result["content"]));
    let pictures = book.processes.iter().map(|process| (&process.id, &process.pictures));
    for (process, parts) in results.chain(pictures) {
        for part in parts.as_array().into_iter().flatten() {
            if let Some(digits) = part["blob"].as_str().and_then(|handle| handle.strip_prefix("blob:"))
                && part["type"] == "image"
                && !book.uses.iter().any(|(user, hash)| user == process && hash.starts_with(digits))
            {
                wrong.push(format!("process {process} has the picture {digits} and no use of its blob"));
            }
        }
    }
}
