//! What the agent can do wrong: each fault is a switch, and knows the case of the conformance kit that finds it.

/// A fault, with what finds it.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What it does wrong.
    pub fault: Fault,
    /// What it is called by, on the command line.
    pub name: &'static str,
    /// The case of the kit that finds it.
    pub case: &'static str,
    /// The rule that it is then told not to keep.
    pub rule: &'static str,
    /// What it does wrong, for people.
    pub does: &'static str,
}

macro_rules! faults {
    ($($fault:ident $name:literal: $case:literal $rule:literal $does:literal;)*) => {
        /// One thing that a runner can do wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $(
                #[doc = concat!("It ", $does, ".")]
                $fault,
            )*
        }

        /// All faults, in the order of the cases that find them.
        pub const MUTANTS: &[Mutant] =
            &[$(Mutant { fault: Fault::$fault, name: $name, case: $case, rule: $rule, does: $does },)*];
    };
}

faults! {
    Greets "greets": "silent-before-initialize" "silent-first" "prints a line when it starts";
    BlankFirst "blank-first": "silent-before-initialize" "silent-first" "prints an empty line when it starts";
    NoName "no-name": "initialize" "initialize" "tells no name";
    TinyLines "tiny-lines": "initialize" "initialize" "tells that it takes lines of 1,024 bytes";
    NoLongest "no-longest": "initialize" "initialize" "does not tell the longest line that it takes";
    HoldsBack "holds-back": "initialize" "initialize" "writes only when 4 KiB have come together";
    NoVersion "no-version": "initialize" "stdout-is-pure" "leaves `jsonrpc` out of its messages";
    SeveralLines "several-lines": "initialize" "stdout-is-pure" "writes a message over several lines";
    DiesOfNullCapabilities "dies-of-null-capabilities": "initialize-with-nulls" "null-is-absent" "dies of capabilities that are null";
    StrictParams "strict-params": "initialize-with-unknown-fields" "unknown-fields" "refuses params with a field that it does not know";
    AnyVersion "any-version": "other-version" "other-version" "takes any version of the protocol";
    RunsUnagreed "runs-unagreed": "other-version" "other-version" "refuses a version, and takes a run all the same";
    RunsFirst "runs-first": "run-before-initialize" "initialize-first" "takes a run before `initialize`";
    AgreesTwice "agrees-twice": "initialize-twice" "initialize-once" "takes a second `initialize`";
    OneLineARead "one-line-a-read": "initialize-and-run-in-one-piece" "back-to-back" "takes only the first line of what it reads at once";

    DeafInARun "deaf-in-a-run": "ping" "ping-any-time" "answers no `ping` while it is busy";
    AnswersPingTwice "answers-ping-twice": "ping" "answer-once" "answers `ping` twice";
    NullForNothing "null-for-nothing": "ping" "ping-any-time" "answers null where {} is meant";
    IdsAreNumbers "ids-are-numbers": "ids" "answer-once" "answers the id \"1\" as 1";
    ShortNumbers "short-numbers": "ids" "answer-once" "keeps 32 bits of an id";
    ShortIds "short-ids": "ids" "answer-once" "keeps 255 bytes of an id";
    SilentAtUnknown "silent-at-unknown": "unknown-method" "unknown-method" "does not answer a method that it does not know";
    UnknownIsInternal "unknown-is-internal": "unknown-method" "unknown-method" "answers an unknown method as an internal error";
    UnknownIsFine "unknown-is-fine": "unknown-method" "unknown-method" "answers an unknown method with {}";
    DiesOfUnknown "dies-of-unknown": "unknown-method" "unknown-method" "dies of a method that it does not know";
    ErrorsAreTexts "errors-are-texts": "unknown-method" "errors" "answers an error that is a text";
    NoKinds "no-kinds": "other-version" "errors" "answers errors of this protocol without their kind";
    ForeignCodes "foreign-codes": "unknown-method" "errors" "answers errors with a number that is not that of their kind";
    TakesBadParams "takes-bad-params": "bad-params" "bad-params" "takes a run whose params do not fit";
    TakesAnyTexts "takes-any-texts": "bad-params" "bad-params" "takes a run whose query or context is no text";
    TakesAnyLists "takes-any-lists": "bad-params" "bad-params" "takes a run whose tools, inputs or history are no list";
    BadIsInternal "bad-is-internal": "bad-params" "bad-params" "answers bad params as an internal error";
    DiesOfLists "dies-of-lists": "params-that-are-no-object" "bad-params" "dies of params that are a list";
    StrictResults "strict-results": "unknown-fields" "unknown-fields" "refuses a result with a field that it does not know";
    DiesOfNullTools "dies-of-null-tools": "nulls" "null-is-absent" "dies of tools that are null";
    DiesOfNullContent "dies-of-null-content": "nulls" "null-is-absent" "dies of a tool's content that is null";
    DiesOfJunk "dies-of-junk": "junk" "junk" "dies of a line that is no message";
    AnswersJunk "answers-junk": "junk" "stdout-is-pure" "answers a line that is no message, with the id null";
    AnswersNotifications "answers-notifications": "junk" "stdout-is-pure" "answers a message without id";
    DiesOfStrangeAnswers "dies-of-strange-answers": "junk" "junk" "dies of an answer to nothing that it asked";
    TakesAnswersTwice "takes-answers-twice": "second-answer" "junk" "takes a second answer for an answer";
    BasicPlane "basic-plane": "unicode" "unicode" "writes ? for characters beyond the basic plane";
    Latin1 "latin-1": "unicode" "stdout-is-pure" "writes ISO 8859-1";
    NoControls "no-controls": "unicode" "unicode" "drops control characters";
    Trims "trims": "unicode" "unicode" "drops white space at the end of a query";
    SplitsAtSeparators "splits-at-separators": "unicode" "unicode" "ends lines at U+2028 too";
    DiesOfHalves "dies-of-halves": "lone-surrogate" "unicode" "dies of half a character";
    SkipsHalves "skips-halves": "lone-surrogate" "unicode" "does not answer a request with half a character";
    SkipsHalfAnswers "skips-half-answers": "lone-surrogate-in-a-call" "unicode" "skips an answer with half a character";
    RoundsNumbers "rounds-numbers": "exact-numbers" "exact-numbers" "reads all numbers as doubles";
    CountsReturns "counts-returns": "carriage-returns" "junk" "takes no line that ends in CR LF";

    Chatters "chatters": "run" "stdout-is-pure" "prints to stdout while it runs";
    BlankLines "blank-lines": "run" "stdout-is-pure" "writes an empty line behind each message";
    AsksAside "asks-aside": "run" "only-in-a-run" "tells its progress behind the run";
    AsksUnknown "asks-unknown": "run" "known-methods" "asks a method that the protocol does not have";
    NoIds "no-ids": "run" "stdout-is-pure" "tells its progress in a message without id";
    ForeignThread "foreign-thread": "run" "own-thread" "names another thread";
    NoPrompt "no-prompt": "run" "ask-the-model" "drops the assistant's prompt";
    PromptIsUsers "prompt-is-users": "run" "ask-the-model" "tells the prompt as a message of the user";
    KeepsItsPrompt "keeps-its-prompt": "prompt-of-each-run" "ask-the-model" "asks each run with the prompt of the first";
    AsksTwice "asks-twice": "slow-model" "one-model-call" "asks the model again before it has answered";
    AlwaysFinished "always-finished": "stop-reasons" "run-ends" "ends each run as finished";
    RefusesUnknownReasons "refuses-unknown-reasons": "stop-reasons" "run-ends" "fails at a finish reason that it does not know";
    TellsTexts "tells-texts": "content-of-the-end" "run-ends" "ends a run with the texts of the answer only";
    TextsForParts "texts-for-parts": "content-of-the-end" "run-ends" "keeps a part that is a text as a text";
    NarrowSchemas "narrow-schemas": "tools-are-offered" "offer-the-tools" "drops from schemas what it does not know";
    KeepsOldTools "keeps-old-tools": "tools-are-offered" "offer-the-tools" "offers the tools of the run before where there are none";
    TakesASecondRun "takes-a-second-run": "two-runs-at-once" "one-run" "takes a run beside another one";
    SilentAtASecondRun "silent-at-a-second-run": "two-runs-at-once" "one-run" "does not answer a run beside another one";
    ForgetsRuns "forgets-runs": "several-runs" "keep-the-conversation" "begins each run anew";
    ForgetsItsAnswer "forgets-its-answer": "several-runs" "keep-the-conversation" "does not keep the last answer of a run";
    EmptyQuery "empty-query": "run-without-query" "run-without-query" "adds an empty message for a run without query";
    NeedsAQuery "needs-a-query": "run-without-query" "run-without-query" "refuses a run without query";
    DropsHistory "drops-history": "history" "history" "drops the history of a run";
    AddsHistory "adds-history": "history-again" "history" "adds the history of a run to what was said before";
    ContextApart "context-apart": "context-and-inputs" "context-and-inputs" "tells the context in a message of its own";
    OneInput "one-input": "context-and-inputs" "context-and-inputs" "shows the first file of a run only";
    DropsPictures "drops-pictures": "pictures" "context-and-inputs" "drops pictures of a run";
    DropsContext "drops-context": "context-and-inputs" "context-and-inputs" "drops the context of a run";
    DropsInputs "drops-inputs": "context-and-inputs" "context-and-inputs" "drops the files of a run";
    DropsInserted "drops-inserted": "inserted" "inserted-first" "drops messages that came in";
    InsertedBehind "inserted-behind": "inserted" "inserted-first" "adds messages that came in behind the answer";
    DropsOpaque "drops-opaque": "verbatim" "verbatim" "drops opaque parts";
    DropsUnknown "drops-unknown": "verbatim" "verbatim" "drops parts of types that it does not know";
    DropsEmptyTexts "drops-empty-texts": "verbatim" "verbatim" "drops texts that are empty";
    TextsFirst "texts-first": "verbatim" "verbatim" "moves texts before all other parts";
    PartsForTexts "parts-for-texts": "verbatim" "verbatim" "makes a part of a content that is a text";
    CutsResults "cuts-results": "verbatim" "verbatim" "keeps only the texts of a tool's result";
    ErrorsAreInternal "errors-are-internal": "model-error" "model-errors" "ends a run with an internal error where the model failed";
    LosesErrorData "loses-error-data": "model-error" "model-errors" "keeps of a model's error the kind only";
    ErrorsAreAnswers "errors-are-answers": "model-error" "model-errors" "tells the words of an error as the answer of the run";
    TriesInVain "tries-in-vain": "model-error" "model-errors" "asks again after an error that is for good";
    TriesForEver "tries-for-ever": "model-error-retryable" "model-errors" "asks again for ever";
    ForgetsTheQuery "forgets-the-query": "model-error-retryable" "model-errors" "asks again without the last message";

    UpperCase "upper-case": "tool" "call-the-tools" "calls tools by names of its own";
    OwnCallIds "own-call-ids": "tool" "call-the-tools" "calls tools with call ids of its own";
    ArgumentsAreText "arguments-are-text": "tool" "call-the-tools" "gives arguments as a text";
    NeedsTheReason "needs-the-reason": "tool-whatever-the-reason" "call-the-tools" "calls tools only where the model gives `tool_calls` as its reason";
    ErrorsAreFine "errors-are-fine": "tool-error" "tool-errors-are-results" "tells the error of a tool as a success";
    OneAtATime "one-at-a-time": "tools-at-once" "calls-at-once" "makes one call after the other";
    TheSameId "the-same-id": "tools-at-once" "requests-only" "gives all its requests the same id";
    OrderOfCalls "order-of-calls": "out-of-order" "in-the-order-of-answers" "adds results in the order of the calls";
    CallsTwice "calls-twice": "hundred-tools" "call-the-tools" "makes each call twice";
    ForgetsACall "forgets-a-call": "hundred-tools" "every-call-a-result" "makes all calls but the last";
    AllAtOnce "all-at-once": "hundreds-of-tools" "many-calls" "makes all calls at once, however many";
    EndsAtMendable "ends-at-mendable": "mendable-errors" "mendable-errors" "ends a run at a call that is refused";
    GoesOnAfterFatal "goes-on-after-fatal": "fatal-error" "mendable-errors" "goes on after an error that is for good";
    MendsTheUnknown "mends-the-unknown": "fatal-error" "mendable-errors" "tells the model an error of a kind that it does not know";
    GuessesArguments "guesses-arguments": "bad-arguments" "bad-arguments" "makes {} of arguments that are no JSON";
    IgnoresEndRun "ignores-end-run": "end-run" "end-run" "asks the model again behind `end_run`";
    FirstEnd "first-end": "end-run-of-several" "end-run" "hands in the first of several results that end the run";
    LosesStructured "loses-structured": "end-run" "end-run" "hands nothing in";
    HandsInArguments "hands-in-arguments": "end-run" "end-run" "hands in the arguments where there is a structured content";

    IgnoresCancel "ignores-cancel": "cancel-in-a-model-call" "cancel" "answers `cancel` and goes on";
    CancelIsAnError "cancel-is-an-error": "cancel-in-a-model-call" "cancel" "answers a cancelled run with an error";
    SilentAtCancel "silent-at-cancel": "cancel-in-a-model-call" "cancel" "does not answer `cancel`";
    EndsTwice "ends-twice": "cancel-in-a-model-call" "answer-once" "answers a cancelled run twice";
    WaitsForTools "waits-for-tools": "cancel-in-a-tool-call" "cancel" "waits for its tools when it is cancelled";
    LosesEarlyCancel "loses-early-cancel": "cancel-before-run" "cancel-the-next" "ignores a cancel before its first run";
    LosesLateCancel "loses-late-cancel": "cancel-after-run" "cancel-the-next" "ignores a cancel between two runs";
    CancelStays "cancel-stays": "cancel-after-run" "cancel-the-next" "takes a cancel as meant for all runs behind it";
    OpenCalls "open-calls": "run-after-cancel" "every-call-a-result" "leaves calls of a cancelled run without result";
    StaysCancelled "stays-cancelled": "run-after-cancel" "go-on-after-cancel" "answers the run behind a cancelled one as cancelled";
    IgnoresCancelCall "ignores-cancel-call": "cancel-call-of-a-run" "cancel-call" "goes on with a run whose call is cancelled";
    DropsTheRun "drops-the-run": "cancel-call-of-a-run" "cancel-call" "does not answer a run whose call is cancelled";
    SilentAtCancelCall "silent-at-cancel-call": "cancel-call-of-nothing" "cancel-call" "does not answer `cancel_call`";
    RefusesCancelCall "refuses-cancel-call": "cancel-call-of-nothing" "cancel-call" "refuses `cancel_call` of what it does not know";
    CancelsAnyCall "cancels-any-call": "cancel-call-of-others-in-a-run" "cancel-call" "ends its run at `cancel_call` of any id";
    LooseIds "loose-ids": "cancel-call-of-others-in-a-run" "cancel-call" "takes the id \"1\" for 1 in `cancel_call`";
    TakesLateAnswers "takes-late-answers": "late-answers" "late-answers" "takes the answer of a call that it gave up for that of another";
    KeepsItsCalls "keeps-its-calls": "gives-up-its-calls" "give-up-calls" "sends no `cancel_call`";

    TellsLess "tells-less": "one-mebibyte" "long-lines" "tells that it takes lines of 64 KiB";
    ShortBuffer "short-buffer": "one-mebibyte" "long-lines" "reads 64 KiB of a line";
    FourMebibytes "four-mebibytes": "eight-mebibytes" "long-lines" "skips lines of more than 4 MiB, and tells that it takes longer ones";
    IgnoresTheirBound "ignores-their-bound": "the-hosts-bound" "their-bound" "writes lines that are longer than the host takes";
    LongToolCalls "long-tool-calls": "the-hosts-bound-of-tool-calls" "their-bound" "writes tool calls that are longer than the host takes";
    LongAnswers "long-answers": "the-hosts-bound-of-answers" "their-bound" "writes answers that are longer than the host takes";
    RoughBound "rough-bound": "the-hosts-bound-to-the-byte" "their-bound" "leaves 300 bytes of each line out when it counts";
    Impatient "impatient": "slow-host" "stdout-is-pure" "gives up when a long line is not read within 300 ms";
    OneReadALine "one-read-a-line": "byte-by-byte" "slow-host" "takes for a line what it reads at once";
    Shallow "shallow": "deep-json" "deep-json" "skips what is nested deeper than 32";

    OutlivesStart "outlives-start": "stdin-ends-at-once" "end-of-stdin" "goes on when stdin ends at once";
    OutlivesHandshake "outlives-handshake": "stdin-ends-after-initialize" "end-of-stdin" "goes on when stdin ends between runs";
    OutlivesModelCall "outlives-model-call": "stdin-ends-in-a-model-call" "end-of-stdin" "goes on when stdin ends while the model is asked";
    OutlivesToolCall "outlives-tool-call": "stdin-ends-in-a-tool-call" "end-of-stdin" "goes on when stdin ends while a tool is called";
    OutlivesHalfALine "outlives-half-a-line": "stdin-ends-in-a-line" "end-of-stdin" "waits for the rest of a line when stdin ends";
    SilentAtShutdown "silent-at-shutdown": "shutdown" "shutdown" "does not answer `shutdown`";
    OutlivesShutdown "outlives-shutdown": "shutdown" "shutdown" "goes on behind `shutdown`";
    EndsItsRunFirst "ends-its-run-first": "shutdown-in-a-run" "shutdown" "answers `shutdown` when its run has ended";
    EndsWithOne "ends-with-one": "exit-code" "exit-code" "exits with 1";

    SaysMessages "says-messages": "messages" "messages" "says `messages` and takes none";
    SwallowsMessages "swallows-messages": "no-messages" "no-messages" "takes messages that its agent never sees";
}

/// The fault of this name.
#[must_use]
pub fn find(name: &str) -> Option<Fault> {
    MUTANTS.iter().find(|mutant| mutant.name == name).map(|mutant| mutant.fault)
}
