//! Which handler answers which method: typed at registration, looked up in jsonrpsee's `RpcModule`.
//!
//! Only async callbacks are registered, and [`crate::peer`] runs each in a task of its own: a panic in a synchronous
//! one would take the reader along. `RpcModule::raw_json_request` is not used, as it parses a line twice.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use jsonrpsee_core::server::{Extensions, MethodCallback, Methods, RpcModule};
use jsonrpsee_types::Params;
use serde::{Serialize, Serializer};
use tokio_util::sync::CancellationToken;

use crate::error::{Kind, RpcError};
use crate::methods::{BOTH_ASK, HOST_ASKS, Method, RUNNER_ASKS};
use crate::peer::{Peer, Turn};
use crate::wire::Id;

/// The longest text about bad params, in characters: serde quotes what it met.
const COMPLAINT_CHARS: usize = 300;

/// What a handler knows of the call that it answers.
#[derive(Debug, Clone)]
pub struct CallCx {
    /// The call.
    pub id: Id,
    /// Cancelled once nobody needs the answer: the other side said so, or the link has ended.
    ///
    /// The handler then has [`crate::peer::CANCEL_GRACE_MS`] to stop where it is safe; after that it is dropped.
    pub cancelled: CancellationToken,
    /// The link that the call came on, for calls back.
    pub peer: Peer,
    /// Its place among the requests of the link; passed already, unless its handler was registered with
    /// [`Service::on_in_turn`].
    pub turn: Turn,
}

/// The methods that one side of a link answers, over what they share.
pub struct Service<C> {
    module: RpcModule<C>,
    in_order: HashSet<&'static str>,
}

impl<C: Send + Sync + 'static> Service<C> {
    /// A service that answers nothing yet but `ping` and `cancel_call`, which [`crate::peer`] answers by itself.
    #[must_use]
    pub fn new(context: Arc<C>) -> Self {
        Self { module: RpcModule::from_arc(context), in_order: HashSet::new() }
    }

    /// Answers `method` by `handler`, in place of an earlier handler of it. Calls are answered beside each other.
    #[must_use]
    pub fn on<M, F, A>(mut self, method: M, handler: F) -> Self
    where
        M: Method,
        F: Fn(Arc<C>, M::Params, CallCx) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<M::Result, RpcError>> + Send + 'static,
    {
        self.register(method, true, handler);
        self.in_order.remove(M::NAME);
        self
    }

    /// Has a method answered by a handler that keeps its place among the requests of the link: it says itself when later
    /// ones may go ahead ([`Turn::pass`]), and waits for its own turn where it wants to ([`Turn::come`]).
    #[must_use]
    pub fn on_in_turn<M, F, A>(mut self, method: M, handler: F) -> Self
    where
        M: Method,
        F: Fn(Arc<C>, M::Params, CallCx) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<M::Result, RpcError>> + Send + 'static,
    {
        self.register(method, false, handler);
        self.in_order.remove(M::NAME);
        self
    }

    /// Answers `method` by `handler`, which must be quick: the next line is looked at when it has returned.
    ///
    /// For what changes the meaning of the requests behind it, as `initialize` and `cancel` do.
    #[must_use]
    pub fn on_in_order<M, F>(mut self, method: M, handler: F) -> Self
    where
        M: Method,
        F: Fn(&C, M::Params, CallCx) -> Result<M::Result, RpcError> + Clone + Send + Sync + 'static,
    {
        self.register(method, true, move |context: Arc<C>, params, call| {
            std::future::ready(handler(&context, params, call))
        });
        self.in_order.insert(M::NAME);
        self
    }

    fn register<M, F, A>(&mut self, _method: M, passes: bool, handler: F)
    where
        M: Method,
        F: Fn(Arc<C>, M::Params, CallCx) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<M::Result, RpcError>> + Send + 'static,
    {
        self.module.remove_method(M::NAME);
        let registered = self.module.register_async_method(M::NAME, move |params, context, extensions| {
            let handler = handler.clone();
            async move {
                let params = read_params::<M>(&params)?;
                let call = extensions.get::<CallCx>().cloned();
                let call = call.ok_or_else(|| RpcError::new(Kind::InternalError, "called outside of a link"))?;
                if passes {
                    call.turn.pass();
                }
                handler(context, params, call).await.map(|result| Shared(Arc::new(result)))
            }
        });
        debug_assert!(registered.is_ok(), "the name was free: {registered:?}");
    }

    pub(crate) fn table(self) -> Table {
        Table { methods: self.module.into(), in_order: self.in_order }
    }
}

impl<C> fmt::Debug for Service<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.module.method_names()).finish()
    }
}

/// A service without its type.
#[derive(Debug)]
pub(crate) struct Table {
    methods: Methods,
    in_order: HashSet<&'static str>,
}

impl Table {
    /// What answers `method`.
    ///
    /// # Errors
    /// `method_not_found`, which tells a method of the protocol that this side does not answer from an unknown one.
    pub(crate) fn find(&self, method: &str) -> Result<Callback, RpcError> {
        match self.methods.method_with_name(method) {
            Some((name, MethodCallback::Async(run))) => {
                Ok(Callback { run: run.clone(), in_order: self.in_order.contains(name) })
            }
            Some(_) | None => Err(not_answered(method)),
        }
    }
}

/// A method found: to be run with the id, the params and [`CallCx`] of a call.
pub(crate) struct Callback {
    run: jsonrpsee_core::server::AsyncMethod<'static>,
    pub(crate) in_order: bool,
}

impl Callback {
    /// Runs the handler; its answer has at most `max_bytes`, else jsonrpsee's error for such answers takes its place.
    pub(crate) async fn answer(
        self,
        params: Params<'static>,
        call: CallCx,
        max_bytes: usize,
    ) -> jsonrpsee_core::server::MethodResponse {
        let id = match &call.id {
            Id::Number(number) => jsonrpsee_types::Id::Number(*number),
            Id::Text(text) => jsonrpsee_types::Id::Str(text.clone().into()),
        };
        let mut extensions = Extensions::new();
        extensions.insert(call);
        (self.run)(id, params, 0_u32.into(), max_bytes, extensions).await
    }
}

fn not_answered(method: &str) -> RpcError {
    let known = [HOST_ASKS, RUNNER_ASKS, BOTH_ASK].into_iter().flatten().any(|info| info.name == method);
    let shown: String = method.chars().take(80).collect();
    let text = if known {
        format!("this side of the link does not answer `{shown}`")
    } else {
        format!("the protocol has no method `{shown}`")
    };
    RpcError::new(Kind::MethodNotFound, text)
}

fn read_params<M: Method>(params: &Params<'_>) -> Result<M::Params, RpcError> {
    serde_json::from_str(params.as_str().unwrap_or("{}")).map_err(|error| bad_params(M::NAME, &error.to_string()))
}

/// The error for params that do not fit `method`.
pub(crate) fn bad_params(method: &str, complaint: &str) -> RpcError {
    let complaint: String = complaint.chars().take(COMPLAINT_CHARS).collect();
    RpcError::new(Kind::InvalidParams, format!("the params of `{method}` do not fit: {complaint}"))
}

/// jsonrpsee clones results, ours need not be clonable.
struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
