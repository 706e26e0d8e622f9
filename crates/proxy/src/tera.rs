//! TERA: the list of servers that launchers fetch over HTTP.
//!
//! ```xml
//! <serverlist>
//!   <server>
//!     <id>4</id>
//!     <ip>203.0.113.5</ip>
//!     <port>7801</port>
//!     <name raw_name="Velika">Velika</name>
//!   </server>
//! </serverlist>
//! ```
//!
//! A proxy opens a port for each server and serves the same list with its own addresses.

use core::ops::Range;
use std::io;
use std::net::IpAddr;

use quick_xml::Reader;
use quick_xml::events::Event;

/// A launcher's list of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerList {
    /// A byte-order mark, or nothing.
    mark: &'static str,
    /// The rest of the text.
    text: String,
    servers: Vec<ListedServer>,
}

/// A server in a list, with the byte offsets of its address.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedServer {
    ip: Range<usize>,
    port: Range<usize>,
}

/// Why a list of servers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerListError {
    /// It is not XML.
    #[error("line {line}: not XML: {problem}")]
    Xml {
        /// The line.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// One of its servers has no usable address.
    #[error("line {line}: the server needs {wanted}")]
    Server {
        /// The line on which the server ends.
        line: usize,
        /// What the server lacks.
        wanted: &'static str,
    },
    /// It has too many servers.
    #[error("the list has more than {MAX_SERVERS} servers")]
    TooMany,
    /// It has no servers.
    #[error("the list has no servers: no `server` element has `ip` and `port`")]
    Empty,
}

/// The maximum number of servers in a list. Each needs a port.
const MAX_SERVERS: usize = 256;

impl ServerList {
    /// Reads a list.
    ///
    /// ```
    /// use worldwire_proxy::ServerList;
    ///
    /// let list = "<serverlist><server><ip>203.0.113.5</ip><port>7801</port></server></serverlist>";
    /// let list = ServerList::parse(list.to_owned())?;
    /// assert_eq!(list.servers().collect::<Vec<_>>(), ["203.0.113.5:7801"]);
    /// # Ok::<(), worldwire_proxy::ServerListError>(())
    /// ```
    ///
    /// # Errors
    /// The text is not XML, has no servers or too many, or a server has no usable address.
    pub fn parse(text: String) -> Result<Self, ServerListError> {
        // The reader does not count a byte-order mark.
        let (mark, list) = match text.strip_prefix('\u{feff}') {
            Some(list) => ("\u{feff}", list.to_owned()),
            None => ("", text),
        };
        let servers = read(&list)?;
        Ok(Self { mark, text: list, servers })
    }

    /// The addresses of the servers, as host and port.
    pub fn servers(&self) -> impl Iterator<Item = String> {
        self.servers.iter().map(|server| self.address(server))
    }

    /// The list with other addresses. Everything else is kept.
    ///
    /// # Errors
    /// Those of `port_for`, which returns the port to use for a server's address.
    pub fn with_addresses(
        &self,
        own: IpAddr,
        mut port_for: impl FnMut(&str) -> io::Result<u16>,
    ) -> io::Result<String> {
        let mut changes = Vec::new();
        for server in &self.servers {
            let port = port_for(&self.address(server))?;
            changes.push((server.ip.clone(), own.to_string()));
            changes.push((server.port.clone(), port.to_string()));
        }
        changes.sort_by_key(|(range, _)| range.start);
        let mut text = self.mark.to_owned();
        let mut done = 0;
        for (range, value) in changes {
            text.push_str(self.text.get(done..range.start).unwrap_or_default());
            text.push_str(&value);
            done = range.end;
        }
        text.push_str(self.text.get(done..).unwrap_or_default());
        Ok(text)
    }

    fn address(&self, server: &ListedServer) -> String {
        let [ip, port] = [&server.ip, &server.port].map(|range| content(&self.text, range));
        match ip.parse() {
            Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
            _ => format!("{ip}:{port}"),
        }
    }
}

/// The text at a position, without the delimiters of a CDATA section.
fn content<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    let found = text.get(range.clone()).unwrap_or_default().trim();
    let inner = found.strip_prefix("<![CDATA[").and_then(|rest| rest.strip_suffix("]]>"));
    inner.unwrap_or(found).trim()
}

fn read(text: &str) -> Result<Vec<ListedServer>, ServerListError> {
    let mut reader = Reader::from_str(text);
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let mut servers = Vec::new();
    // The number of open elements, and the depth of the current server.
    let (mut depth, mut server_at) = (0_usize, None);
    let (mut ip, mut port): (Option<Range<usize>>, Option<Range<usize>>) = (None, None);
    let mut from = 0;
    loop {
        let before = place(reader.buffer_position());
        let event = reader.read_event().map_err(|error| {
            let line = line(place(reader.error_position()));
            ServerListError::Xml { line, problem: error.to_string() }
        })?;
        let after = place(reader.buffer_position());
        match event {
            Event::Start(element) => {
                depth += 1;
                if server_at.is_none() && element.name().as_ref() == "server" {
                    server_at = Some(depth);
                }
                from = after;
            }
            Event::End(element) => {
                let is_field = server_at.is_some_and(|at| depth == at + 1);
                match element.name().as_ref() {
                    "ip" if is_field => ip = Some(from..before),
                    "port" if is_field => port = Some(from..before),
                    _ if server_at == Some(depth) => {
                        let (ip, port) = (ip.take(), port.take());
                        servers.push(listed(text, ip, port).map_err(|wanted| {
                            ServerListError::Server { line: line(before), wanted }
                        })?);
                        server_at = None;
                    }
                    _ => {}
                }
                if servers.len() > MAX_SERVERS {
                    return Err(ServerListError::TooMany);
                }
                depth = depth.saturating_sub(1);
            }
            Event::Eof if servers.is_empty() => return Err(ServerListError::Empty),
            Event::Eof => return Ok(servers),
            _ => {}
        }
    }
}

/// Checks the address of a server.
fn listed(
    text: &str,
    ip: Option<Range<usize>>,
    port: Option<Range<usize>>,
) -> Result<ListedServer, &'static str> {
    let is_host = |host: &str| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        !host.is_empty() && (host.parse::<IpAddr>().is_ok() || host.bytes().all(is_name))
    };
    let ip = ip.filter(|ip| is_host(content(text, ip))).ok_or("an address in `ip`")?;
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    let port = port.filter(|port| is_port(content(text, port))).ok_or("a port in `port`")?;
    Ok(ListedServer { ip, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\u{feff}<?xml version=\"1.0\"?>\n<serverlist>\n<!-- two -->\n<server>\n\
        <id>4</id><ip>203.0.113.5</ip>\n<port> 7801 </port>\n\
        <name raw_name=\"A &amp; B\"><![CDATA[<b>A</b>]]></name></server>\n\
        <server><port><![CDATA[7802]]></port><ip>tera.example.org</ip>\
        <more><ip>203.0.113.9</ip></more><popup/></server>\n</serverlist>\n";

    #[test]
    fn only_addresses_change() {
        let list = ServerList::parse(LIST.to_owned()).unwrap();
        let servers: Vec<_> = list.servers().collect();
        assert_eq!(servers, ["203.0.113.5:7801", "tera.example.org:7802"]);
        let own = "127.0.0.1".parse().unwrap();
        let mut asked = Vec::new();
        let text = list.with_addresses(own, |server| {
            asked.push(server.to_owned());
            Ok(40_000 + u16::try_from(asked.len()).unwrap())
        });
        assert_eq!(asked, servers);
        let wanted = LIST
            .replace("203.0.113.5", "127.0.0.1")
            .replace(" 7801 ", "40001")
            .replace("<![CDATA[7802]]>", "40002")
            .replace("tera.example.org", "127.0.0.1");
        assert_eq!(text.unwrap(), wanted);
    }

    #[test]
    fn addresses_of_ipv6_are_written_as_hosts() {
        let list = "<l><server><ip>2001:db8::1</ip><port>1</port></server></l>".to_owned();
        let list = ServerList::parse(list).unwrap();
        assert_eq!(list.servers().collect::<Vec<_>>(), ["[2001:db8::1]:1"]);
    }

    #[test]
    fn unusable_lists_are_refused_with_their_line() {
        let mistake = |text: &str| ServerList::parse(text.to_owned()).unwrap_err().to_string();
        assert!(mistake("").starts_with("the list has no server"), "{}", mistake(""));
        assert!(mistake("<a><b></a>").starts_with("line 1: not XML: "));
        let without = "<l>\n<server>\n<port>1</port>\n</server></l>";
        assert_eq!(mistake(without), "line 4: the server needs an address in `ip`");
        for port in ["0", "65536", "", "x", "<x/>"] {
            let list = format!("<l>\n<server><ip>a</ip><port>{port}</port></server></l>");
            assert_eq!(mistake(&list), "line 2: the server needs a port in `port`", "{port}");
        }
        for ip in ["a b", "", "a/b", "&lt;"] {
            let list = format!("<l><server><ip>{ip}</ip><port>1</port></server></l>");
            assert_eq!(mistake(&list), "line 1: the server needs an address in `ip`", "{ip}");
        }
        let server = "<server><ip>a</ip><port>1</port></server>";
        let many = format!("<l>{}</l>", server.repeat(MAX_SERVERS + 1));
        assert_eq!(mistake(&many), "the list has more than 256 servers");
        // Deeply nested input, and input that would take quadratic time.
        let deep = format!("{}<ip>", "<server>".repeat(100_000));
        assert!(mistake(&deep).starts_with("the list has no server"), "{}", mistake(&deep));
    }
}
