//! The functions that expressions may call, and what they take and give.
//!
//! A row is a name and its overloads, in the order in which they are tried: `TARGET.(ARGUMENTS) RESULT`,
//! without a target for a plain call. A capital letter stands for any type; `KIND KIND … | OVERLOAD` is
//! an overload for every kind, which `*` stands for.

use super::kinds::Type;
use super::messages::Message;

/// One way in which a function may be called.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) has_target: bool,
    /// The target first, if there is one.
    pub(super) takes: Vec<Type>,
    pub(super) gives: Type,
}

/// The ways in which a function may be called; none if there is no such function.
pub(super) fn overloads(name: &str) -> Option<Vec<Signature>> {
    let (_, text) = FUNCTIONS.iter().find(|(known, _)| *known == name)?;
    Some(text.split("; ").flat_map(each).collect())
}

fn each(text: &str) -> Vec<Signature> {
    let Some((kinds, text)) = text.split_once(" | ") else {
        return vec![Reader(text).signature()];
    };
    let kinds = kinds.split(' ');
    kinds
        .map(|kind| Reader(&text.replace('*', kind)).signature())
        .collect()
}

/// The type of which a name is the name.
pub(super) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" | "timestamp" => Type::Timestamp,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "optional_type" => Type::optional(Type::Dyn),
        "string" => Type::String,
        "type" => Type::Kind(None),
        "uint" => Type::Uint,
        "net.CIDR" | "net.IP" => thing(name)?,
        _ => return Message::find(name).map(Message::kind),
    })
}

/// Things of the libraries, most of which no expression can name.
pub(super) fn thing(name: &str) -> Option<Type> {
    const OPAQUE: &[&str] = &["net.CIDR", "net.IP"];
    const NAMED: &[&str] = &[
        "kubernetes.NamedFormat",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.URL",
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.Decision",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.ResourceCheck",
    ];
    let find = |list: &'static [&'static str]| list.iter().find(|known| **known == name);
    let opaque = find(OPAQUE).map(|name| Type::Opaque(name));
    opaque.or_else(|| find(NAMED).map(|name| Type::Named(name)))
}

struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn takes(&mut self, sign: &str) -> bool {
        match self.0.strip_prefix(sign) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn signature(&mut self) -> Signature {
        let mut takes = Vec::new();
        let has_target = !self.0.starts_with('(');
        if has_target {
            takes.push(self.kind());
            self.takes(".");
        }
        self.takes("(");
        while !self.takes(") ") {
            takes.push(self.kind());
            self.takes(", ");
        }
        Signature {
            has_target,
            takes,
            gives: self.kind(),
        }
    }

    fn kind(&mut self) -> Type {
        let end = self.0.find(['(', ')', ',', ' ']).unwrap_or(self.0.len());
        // A target ends where its call begins.
        let end = self.0[..end].strip_suffix('.').map_or(end, str::len);
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        match name {
            "list" | "optional" | "type" | "map" if self.takes("(") => {
                let first = self.kind();
                let kind = match name {
                    "list" => Type::list(first),
                    "optional" => Type::optional(first),
                    "type" => Type::of_type(first),
                    _ => {
                        self.takes(", ");
                        Type::map(first, self.kind())
                    }
                };
                self.takes(")");
                kind
            }
            "Authorizer" | "Decision" | "GroupCheck" | "PathCheck" | "ResourceCheck" => {
                thing(&format!("kubernetes.authorization.{name}")).unwrap_or(Type::Dyn)
            }
            "NamedFormat" | "Quantity" | "Semver" | "URL" => {
                thing(&format!("kubernetes.{name}")).unwrap_or(Type::Dyn)
            }
            "CIDR" | "IP" => thing(&format!("net.{name}")).unwrap_or(Type::Dyn),
            _ => match name.as_bytes() {
                [letter] => Type::Letter(*letter),
                _ => type_named(name).unwrap_or(Type::Dyn),
            },
        }
    }
}

/// Comparisons: of kinds alike, and of numbers of every kind.
const ORDER: &str = "bool int | (*, *) bool; double uint | (int, *) bool; (uint, uint) bool; double int | (uint, *) bool; \
double int uint | (double, *) bool; string bytes timestamp duration | (*, *) bool";
const TIME: &str = "timestamp.() int; timestamp.(string) int";
const SPAN: &str = "timestamp.() int; timestamp.(string) int; duration.() int";
const COMPARED: &str = "int uint double bool duration timestamp string bytes | list(*).() *";
const SAME: &str = "() NamedFormat";

pub(super) const FUNCTIONS: &[(&str, &str)] = &[
    ("!_", "(bool) bool"),
    ("-_", "(double) double; (int) int"),
    ("@not_strictly_false", "(bool) bool"),
    (
        "@sortByAssociatedKeys",
        "int uint double bool duration timestamp string bytes | list(T).(list(*)) list(T)",
    ),
    ("_!=_", "(A, A) bool"),
    ("_%_", "int uint | (*, *) *"),
    ("_&&_", "(bool, bool) bool"),
    ("_*_", "double int uint | (*, *) *"),
    (
        "_+_",
        "bytes double duration | (*, *) *; (duration, timestamp) timestamp; (timestamp, duration) timestamp; \
         (int, int) int; (list(A), list(A)) list(A); string uint | (*, *) *",
    ),
    (
        "_-_",
        "double duration int | (*, *) *; (timestamp, duration) timestamp; (timestamp, timestamp) duration; (uint, uint) uint",
    ),
    ("_/_", "double int uint | (*, *) *"),
    ("_<=_", ORDER),
    ("_<_", ORDER),
    ("_==_", "(A, A) bool"),
    ("_>=_", ORDER),
    ("_>_", ORDER),
    ("_?_:_", "(bool, A, A) A"),
    (
        "_[?_]",
        "(list(V), int) optional(V); (optional(list(V)), int) optional(V); (map(K, V), K) optional(V); \
         (optional(map(K, V)), K) optional(V)",
    ),
    (
        "_[_]",
        "(list(A), int) A; (map(A, B), A) B; (optional(list(V)), int) optional(V); (optional(map(K, V)), K) optional(V)",
    ),
    ("_||_", "(bool, bool) bool"),
    ("@in", "(A, list(A)) bool; (A, map(A, B)) bool"),
    ("add", "Quantity int | Quantity.(*) Quantity"),
    ("allowed", "Decision.() bool"),
    ("asApproximateFloat", "Quantity.() double"),
    ("asInteger", "Quantity.() int"),
    ("bool", "(bool) bool; (string) bool"),
    ("bytes", "(bytes) bytes; (string) bytes"),
    (
        "cel.@mapInsert",
        "(map(K, V), K, V) map(K, V); (map(K, V), map(K, V)) map(K, V)",
    ),
    ("charAt", "string.(int) string"),
    ("check", "PathCheck ResourceCheck | *.(string) Decision"),
    ("cidr", "(string) CIDR"),
    ("compareTo", "Quantity Semver | *.(*) int"),
    ("contains", "string.(string) bool"),
    ("containsCIDR", "string CIDR | CIDR.(*) bool"),
    ("containsIP", "string IP | CIDR.(*) bool"),
    ("distinct", "list(T).() list(T)"),
    ("double", "double int string uint | (*) double"),
    ("duration", "duration int string | (*) duration"),
    ("dyn", "(A) dyn"),
    ("endsWith", "string.(string) bool"),
    ("error", "Decision.() string"),
    ("errored", "Decision.() bool"),
    ("family", "IP.() int"),
    ("fieldSelector", "ResourceCheck.(string) ResourceCheck"),
    ("find", "string.(string) string"),
    (
        "findAll",
        "string.(string) list(string); string.(string, int) list(string)",
    ),
    ("first", "list(V).() optional(V)"),
    (
        "flatten",
        "list(list(T)).() list(T); list(dyn).(int) list(dyn)",
    ),
    ("format", "string.(list(dyn)) string"),
    ("format.byte", SAME),
    ("format.date", SAME),
    ("format.datetime", SAME),
    ("format.dns1035Label", SAME),
    ("format.dns1035LabelPrefix", SAME),
    ("format.dns1123Label", SAME),
    ("format.dns1123LabelPrefix", SAME),
    ("format.dns1123Subdomain", SAME),
    ("format.dns1123SubdomainPrefix", SAME),
    ("format.labelValue", SAME),
    ("format.named", "(string) optional(NamedFormat)"),
    ("format.qualifiedName", SAME),
    ("format.uri", SAME),
    ("format.uuid", SAME),
    ("getDate", TIME),
    ("getDayOfMonth", TIME),
    ("getDayOfWeek", TIME),
    ("getDayOfYear", TIME),
    ("getEscapedPath", "URL.() string"),
    ("getFullYear", TIME),
    ("getHost", "URL.() string"),
    ("getHostname", "URL.() string"),
    ("getHours", SPAN),
    ("getMilliseconds", SPAN),
    ("getMinutes", SPAN),
    ("getMonth", TIME),
    ("getPort", "URL.() string"),
    ("getQuery", "URL.() map(string, list(string))"),
    ("getScheme", "URL.() string"),
    ("getSeconds", SPAN),
    ("group", "Authorizer.(string) GroupCheck"),
    ("hasValue", "optional(V).() bool"),
    (
        "indexOf",
        "string.(string) int; string.(string, int) int; list(A).(A) int",
    ),
    ("int", "int double duration string timestamp uint | (*) int"),
    ("ip", "(string) IP; CIDR.() IP"),
    ("ip.isCanonical", "(string) bool"),
    ("isCIDR", "(string) bool"),
    ("isGlobalUnicast", "IP.() bool"),
    ("isGreaterThan", "Quantity Semver | *.(*) bool"),
    ("isIP", "(string) bool"),
    ("isInteger", "Quantity.() bool"),
    ("isLessThan", "Quantity Semver | *.(*) bool"),
    ("isLinkLocalMulticast", "IP.() bool"),
    ("isLinkLocalUnicast", "IP.() bool"),
    ("isLoopback", "IP.() bool"),
    ("isQuantity", "(string) bool"),
    ("isSemver", "(string) bool; (string, bool) bool"),
    (
        "isSorted",
        "int uint double bool duration timestamp string bytes | list(*).() bool",
    ),
    ("isURL", "(string) bool"),
    ("isUnspecified", "IP.() bool"),
    (
        "join",
        "list(string).() string; list(string).(string) string",
    ),
    ("labelSelector", "ResourceCheck.(string) ResourceCheck"),
    ("last", "list(V).() optional(V)"),
    (
        "lastIndexOf",
        "string.(string) int; string.(string, int) int; list(A).(A) int",
    ),
    ("lists.range", "(int) list(int)"),
    ("lowerAscii", "string.() string"),
    ("major", "Semver.() int"),
    ("masked", "CIDR.() CIDR"),
    ("matches", "(string, string) bool; string.(string) bool"),
    ("max", COMPARED),
    ("min", COMPARED),
    ("minor", "Semver.() int"),
    ("name", "ResourceCheck.(string) ResourceCheck"),
    ("namespace", "ResourceCheck.(string) ResourceCheck"),
    ("optional.none", "() optional(V)"),
    ("optional.of", "(V) optional(V)"),
    ("optional.ofNonZeroValue", "(V) optional(V)"),
    ("optional.unwrap", "(list(optional(V))) list(V)"),
    ("or", "optional(V).(optional(V)) optional(V)"),
    ("orValue", "optional(V).(V) V"),
    ("patch", "Semver.() int"),
    ("path", "Authorizer.(string) PathCheck"),
    ("prefixLength", "CIDR.() int"),
    ("quantity", "(string) Quantity"),
    ("reason", "Decision.() string"),
    (
        "replace",
        "string.(string, string) string; string.(string, string, int) string",
    ),
    ("resource", "GroupCheck.(string) ResourceCheck"),
    ("reverse", "list(T).() list(T)"),
    ("semver", "(string) Semver; (string, bool) Semver"),
    ("serviceAccount", "Authorizer.(string, string) Authorizer"),
    ("sets.contains", "(list(T), list(T)) bool"),
    ("sets.equivalent", "(list(T), list(T)) bool"),
    ("sets.intersects", "(list(T), list(T)) bool"),
    ("sign", "(Quantity) int"),
    (
        "size",
        "(bytes) int; bytes.() int; (list(A)) int; list(A).() int; (map(A, B)) int; map(A, B).() int; (string) int; string.() int",
    ),
    ("slice", "list(T).(int, int) list(T)"),
    (
        "sort",
        "int uint double bool duration timestamp string bytes | list(*).() list(*)",
    ),
    (
        "split",
        "string.(string) list(string); string.(string, int) list(string)",
    ),
    ("startsWith", "string.(string) bool"),
    (
        "string",
        "string bool bytes double duration int timestamp uint IP CIDR | (*) string",
    ),
    ("strings.quote", "(string) string"),
    ("sub", "Quantity int | Quantity.(*) Quantity"),
    ("subresource", "ResourceCheck.(string) ResourceCheck"),
    ("substring", "string.(int) string; string.(int, int) string"),
    ("sum", "int uint double duration | list(*).() *"),
    ("timestamp", "timestamp int string | (*) timestamp"),
    ("trim", "string.() string"),
    ("type", "(A) type(A)"),
    ("uint", "uint double int string | (*) uint"),
    ("unwrapOpt", "list(optional(V)).() list(V)"),
    ("upperAscii", "string.() string"),
    ("url", "(string) URL"),
    ("validate", "NamedFormat.(string) optional(list(string))"),
    ("value", "optional(V).() V"),
];
