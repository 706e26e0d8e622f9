/**
 * Types of the API, for editors and `tsc`. There is no code in this file.
 *
 * @typedef {object} PageEvent
 * @property {string} type
 * @property {CaptureStatus} [capture]
 * @property {SelectionStatus} [selection]
 * @property {LiveState} [live]
 *
 * @typedef {object} LiveState What a running program reports: a proxy the first three, a server the others.
 * @property {Held[]} [held]
 * @property {{connection: number, client: string, server: string}[]} [connections]
 * @property {string[]} [filters]
 * @property {string} [server]
 * @property {ServerList[]} [lists]
 * @property {Record<string, number> | null} [figures]
 * @property {{member: string, column: string}} [kick]
 * @property {string[]} [log]
 *
 * @typedef {object} ServerList
 * @property {string} title
 * @property {number} total
 * @property {Record<string, unknown>[]} rows
 * @property {string} [error]
 *
 * @typedef {object} Held
 * @property {number} connection
 * @property {number} id
 * @property {string} from
 * @property {string} name
 * @property {number} seconds
 * @property {string} line
 *
 * @typedef {object} CaptureStatus
 * @property {number} api
 * @property {string} file
 * @property {number} size
 * @property {number} bytes
 * @property {boolean} complete
 * @property {boolean} following
 * @property {boolean} caught_up
 * @property {boolean} changed
 * @property {string} [live]
 * @property {number} rows
 * @property {number} conversations
 * @property {number} problems
 * @property {number} gaps
 * @property {string | null} first
 * @property {string | null} last
 * @property {string} [error]
 *
 * @typedef {object} Conversation
 * @property {number} stream
 * @property {string} client
 * @property {string} server
 * @property {string} transport
 * @property {string | null} family
 * @property {boolean} midstream
 * @property {string} first
 * @property {string} last
 * @property {[number, number]} bytes
 * @property {number} messages
 * @property {number} problems
 * @property {number} gaps
 * @property {number[]} sparkline
 *
 * @typedef {object} Row
 * @property {number} row
 * @property {string} time
 * @property {number} packet
 * @property {number} stream
 * @property {string} family
 * @property {string} from
 * @property {string} name
 * @property {string} kind
 * @property {number} length
 * @property {boolean} problem
 * @property {string} info
 *
 * @typedef {object} SelectionStatus
 * @property {number} id
 * @property {number} rows
 * @property {number} bytes
 * @property {boolean} complete
 * @property {boolean} caught_up
 * @property {string[]} [remarks]
 * @property {string} [error]
 *
 * @typedef {object} FieldNode
 * @property {number} depth
 * @property {string} name
 * @property {string} kind
 * @property {string} value
 * @property {string} [json]
 * @property {number} layer
 * @property {[number, number]} start
 * @property {[number, number]} end
 *
 * @typedef {object} Layer
 * @property {string} name
 * @property {number} base
 * @property {number} length
 * @property {string} bytes
 * @property {[number, number, number]} [parent]
 *
 * @typedef {object} Detail
 * @property {number} row
 * @property {number} stream
 * @property {number | null} packet
 * @property {string} time
 * @property {string} family
 * @property {string} from
 * @property {string} name
 * @property {string} [note]
 * @property {[number, number]} range
 * @property {number} node_count
 * @property {FieldNode[]} nodes
 * @property {Layer[]} layers
 * @property {string} [error]
 * @property {string[]} remarks
 * @property {string} [advice]
 * @property {string} body
 * @property {string} [line]
 * @property {string} [codec]
 * @property {{base: number, bytes: string}} [captured]
 *
 * @typedef {object} Series
 * @property {string} [name]
 * @property {string} [from]
 * @property {number} total
 * @property {number[]} counts
 *
 * @typedef {object} TimelineData
 * @property {string} from
 * @property {string} to
 * @property {Series[]} series
 * @property {{bucket: number, row: number}[]} gaps
 * @property {{bucket: number, row: number}[]} problems
 *
 * @typedef {object} Suggestion
 * @property {string} text
 * @property {string} kind
 *
 * @typedef {object} RowNote
 * @property {number} row
 * @property {number} packet
 * @property {string} name
 * @property {string} text
 */

export {};
