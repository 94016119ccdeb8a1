//! Blobs for an app and for the doors.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::Part;

use super::{Described, Handle, bytes, find};
use crate::caller::Caller;
use crate::host::Host;
use crate::process_table;
use crate::store::StoreError;

impl Host {
    /// A blob that a caller may read, with its bytes: a session those of all processes of its principal, a process what it
    /// was given. None where it has none of this handle.
    ///
    /// # Errors
    /// The store's.
    pub async fn blob(&self, caller: Caller, handle: &Handle) -> Result<Option<(Described, Vec<u8>)>, StoreError> {
        let handle = handle.clone();
        let look = self.store().read(move |db| {
            let Some(found) = find(db, caller, &handle)? else { return Ok(None) };
            Ok(bytes(db, &found)?.map(|bytes| (found, bytes)))
        });
        look.await
    }

    /// What a caller may read of these, without the bytes.
    pub(crate) async fn described(&self, caller: Caller, handles: Vec<Handle>) -> Result<Vec<Described>, StoreError> {
        let look = self.store().read(move |db| {
            let found = handles.iter().map(|handle| find(db, caller, handle));
            found.filter_map(Result::transpose).collect()
        });
        look.await
    }

    /// The pictures of a result, each as a handle: [`Host::blob`] has the bytes. The text of the result names them too.
    ///
    /// # Errors
    /// The store's.
    pub async fn pictures(&self, process: ProcessId) -> Result<Vec<Part>, StoreError> {
        self.store().read(move |db| process_table::pictures(db, process)).await
    }
}
