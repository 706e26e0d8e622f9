// The only code that talks to the server.

/** @import * as T from "./types.js" */

/** An error from the server, with its explanation. */
export class Refused extends Error {
  /** @param {string} message @param {number} [status] @param {any} [body] */
  constructor(message, status, body) {
    super(message);
    this.status = status;
    /** @type {number | undefined} */
    this.column = body?.column;
    /** The path of the field that is wrong. @type {string | undefined} */
    this.field = body?.field ?? undefined;
  }
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
async function request(path, init) {
  return (await exchange(path, init)).body;
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<{body: any, tag: string | null}>}
 */
async function exchange(path, init) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new Refused("the server cannot be reached; is the program still running?");
  }
  const tag = response.headers.get("etag");
  if (response.status === 204) return { body: null, tag };
  const type = response.headers.get("content-type") ?? "";
  const isText = type.startsWith("image/svg");
  const body = type.startsWith("application/json") ? await response.json() : isText ? await response.text() : null;
  if (!response.ok) throw new Refused(body?.error ?? response.statusText, response.status, body);
  return { body, tag };
}

/** @param {string} path @param {unknown} body @returns {Promise<any>} */
const post = (path, body) => request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

/** @param {Record<string, string | number | bigint | null | undefined>} values */
function query(values) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

/** @returns {Promise<T.CaptureStatus>} */
export const capture = () => request("/api/capture");

/**
 * @param {number} start
 * @param {number} count
 * @returns {Promise<{total: number, conversations: T.Conversation[]}>}
 */
export const conversations = (start, count) =>
  request(`/api/conversations${query({ start, count })}`);

/**
 * @param {number | null} selection
 * @param {number} start
 * @param {number} count
 * @returns {Promise<{total: number, start: number, rows: T.Row[]}>}
 */
export const rows = (selection, start, count) =>
  request(`/api/rows${query({ selection, start, count })}`);

/**
 * @param {number | null} selection
 * @param {{row?: number, time?: string}} wanted
 * @returns {Promise<{position: number, row: number | null}>}
 */
export const position = (selection, wanted) =>
  request(`/api/position${query({ selection, ...wanted })}`);

/**
 * @param {{filter: string, search: string, match_case?: boolean, stream: number | null}} wanted
 * @returns {Promise<T.SelectionStatus>}
 */
export const select = (wanted) => post("/api/selections", wanted);

/** @param {number} id @returns {Promise<T.SelectionStatus>} */
export const selection = (id) => request(`/api/selections/${id}`);

/** @param {number} id @returns {Promise<null>} */
export const drop = (id) => request(`/api/selections/${id}`, { method: "DELETE" });

/** @param {number} row @returns {Promise<T.Detail>} */
export const message = (row) => request(`/api/messages/${row}`);

/**
 * @param {{selection: number | null, from: bigint | null, to: bigint | null, buckets: number}} wanted
 * @returns {Promise<T.TimelineData>}
 */
export const timeline = (wanted) => request(`/api/timeline${query(wanted)}`);

/**
 * @param {string} text
 * @param {number} cursor
 * @returns {Promise<{start: number, end: number, suggestions: T.Suggestion[]}>}
 */
export const suggestions = (text, cursor) => request(`/api/suggestions${query({ text, cursor })}`);

/**
 * The notes, and the state of their file.
 * @returns {Promise<{notes: T.RowNote[], tag: string | null}>}
 */
export async function notes() {
  const { body, tag } = await exchange("/api/notes");
  return { notes: body.notes, tag };
}

/**
 * Saves the notes, unless their file has changed. Returns its new state.
 * @param {T.RowNote[]} list
 * @param {string | null} known
 */
export async function saveNotes(list, known) {
  const { tag } = await exchange("/api/notes", {
    method: "PUT",
    headers: { "content-type": "application/json", ...(known === null ? {} : { "if-match": known }) },
    body: JSON.stringify({ version: 1, notes: list }),
  });
  return tag;
}

/**
 * The contents of a directory of an archive, or the files whose names contain some words.
 * @param {{folder?: string, search?: string, start: number}} wanted
 * @returns {Promise<{total: number, start: number, rows: T.ArchiveRow[]}>}
 */
export const archive = (wanted) => request(`/api/archive/files${query(wanted)}`);

/** @param {number} file @returns {Promise<T.FileDetail>} */
export const archiveFile = (file) => request(`/api/archive/files/${file}`);

/** The address of a file's content. @param {number} file */
export const contentPath = (file) => `/api/archive/files/${file}/content`;

/** A file as SVG. @param {number} file @returns {Promise<string>} */
export const picture = async (file) => (await exchange(`/api/archive/files/${file}/picture`)).body;

/** A game object as JSON. @param {number} file @returns {Promise<{object: string}>} */
export const archiveObject = (file) => request(`/api/archive/files/${file}/object`);

/** A class of game objects. @param {string} name @returns {Promise<T.ClassDetail>} */
export const archiveClass = (name) => request(`/api/archive/classes${query({ name })}`);

/**
 * The names of a class and of those derived from it.
 * @param {string} base empty for all classes
 * @param {string} search
 * @returns {Promise<{total: number, names: string[]}>}
 */
export const archiveClasses = (base, search) => request(`/api/archive/classes${query({ base, search })}`);

/** An object after edits. @param {number} file @param {string} object as JSON @returns {Promise<T.FileDetail>} */
export const encodeObject = (file, object) => post(`/api/archive/files/${file}/encode`, { object });

/**
 * Saves a copy of the archive, or only of one file in it.
 * @param {{name: string, file: number | null, objects: {file: number, object: string}[]}} wanted
 * @returns {Promise<{file: string, size: number, changed: number}>}
 */
export const saveCopy = (wanted) => post("/api/archive/copies", wanted);

/**
 * The children of a vault node, nodes with a text, or all nodes without parents.
 * @param {{parent?: number, search?: string, start: number}} wanted
 * @returns {Promise<{total: number, nodes: T.VaultLine[], known: {nodes: number, references: number}, status: T.WorldStatus}>}
 */
export const vault = (wanted) => request(`/api/uru/vault${query(wanted)}`);

/** @param {number} id @returns {Promise<T.VaultNode>} */
export const vaultNode = (id) => request(`/api/uru/vault/${id}`);

/** @returns {Promise<{ages: T.AgeLine[], status: T.WorldStatus}>} */
export const ages = () => request("/api/uru/ages");

/** @param {number} age @param {number} start @returns {Promise<{total: number, objects: T.AgeObject[]}>} */
export const ageObjects = (age, start) => request(`/api/uru/ages/${age}${query({ start })}`);

/** @param {number} age @param {number} object @returns {Promise<T.AgeObjectDetail>} */
export const ageObject = (age, object) => request(`/api/uru/ages/${age}/objects/${object}`);

/** @param {number} age @returns {Promise<{paths: T.AgePath[]}>} */
export const agePaths = (age) => request(`/api/uru/ages/${age}/paths`);

/** The state of the running program. @returns {Promise<T.LiveState>} */
export const live = () => request("/api/live");

/**
 * Asks the running program to do something.
 * @param {Record<string, unknown>} wanted
 * @returns {Promise<Record<string, unknown>[]>}
 */
export const perform = async (wanted) => (await post("/api/live", wanted)).answers;

/** TERA's opcodes without a name. @returns {Promise<T.TeraBoard>} */
export const opcodes = () => request("/api/tera/opcodes");

/**
 * The definitions that fit an opcode.
 * @param {number} build
 * @param {number} opcode
 * @returns {Promise<T.TeraCandidates>}
 */
export const candidates = (build, opcode) => request(`/api/tera/opcodes/${opcode}${query({ build })}`);

/**
 * A message decoded by a definition.
 * @param {number} build
 * @param {number} opcode
 * @param {T.TeraCandidate} candidate
 * @param {number} row
 * @returns {Promise<T.TeraLayout>}
 */
export const layout = (build, opcode, { title: definition, header }, row) =>
  request(`/api/tera/opcodes/${opcode}/layout${query({ build, definition, header, row })}`);

/**
 * The map of a build, with additional names by opcode.
 * @param {number} build
 * @param {Record<string, string>} names
 * @returns {Promise<{file: string, text: string}>}
 */
export const opcodeMap = (build, names) => post("/api/tera/map", { build, names });

/**
 * The conversations of MxO's game channel.
 * @returns {Promise<{total: number, conversations: T.MxoConversation[], limited: boolean}>}
 */
export const mxoConversations = () => request("/api/mxo/views");

/**
 * The objects that a client saw at a given time.
 * @param {number} stream
 * @param {bigint} time
 * @returns {Promise<{time: string, total: number, objects: T.MxoObject[]}>}
 */
export const mxoViews = (stream, time) => request(`/api/mxo/views/${stream}${query({ time })}`);

/**
 * The address of an export.
 * @param {string} format
 * @param {number | null} selection
 */
export const exportPath = (format, selection) => `/api/export/${format}${query({ selection })}`;

/**
 * Reports events until the server stops, and reconnects when the connection is lost.
 * @param {(event: T.PageEvent) => void} heard
 * @param {(isConnected: boolean) => void} connected
 */
export function listen(heard, connected) {
  const open = () => {
    const socket = new WebSocket(`ws://${location.host}/api/events`);
    socket.onopen = () => connected(true);
    socket.onmessage = (message) => heard(JSON.parse(String(message.data)));
    socket.onclose = () => {
      connected(false);
      setTimeout(open, 2000);
    };
  };
  open();
}
