/**
 * Types of the API, for editors and `tsc`. There is no code in this file.
 *
 * @typedef {object} PageEvent
 * @property {string} type
 * @property {CaptureStatus} [capture]
 * @property {SelectionStatus} [selection]
 * @property {LiveState} [live]
 *
 * @typedef {object} LiveState What a running program reports: a proxy reports the first three members, a server the others.
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
 * @property {boolean} receiver_ended
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
 * @property {string[]} views
 * @property {{files: number, size: number, editable: boolean}} [archive]
 * @property {number} rows
 * @property {number} conversations
 * @property {number} problems
 * @property {number} warnings
 * @property {number} gaps
 * @property {number} gaps_without_rows
 * @property {string} options
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
 * @property {number} [file] The number of a file in an archive, which is not a message.
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
 * @typedef {object} ArchiveRow A directory has `files`, a file has the other members.
 * @property {string} path
 * @property {number} [files]
 * @property {number} [file]
 * @property {number} [size]
 * @property {number} [stored]
 *
 * @typedef {object} FileDetail
 * @property {number} file
 * @property {string} path
 * @property {string} kind
 * @property {number} size
 * @property {number} stored
 * @property {boolean} cut
 * @property {boolean} picture
 * @property {string} [codec]
 * @property {string} [text]
 * @property {number} node_count
 * @property {FieldNode[]} nodes
 * @property {Layer[]} layers
 * @property {string} [error]
 * @property {string[]} remarks
 * @property {string[]} [warnings] about an edited object
 * @property {boolean} [changed] Whether an edited object differs from the one in the archive.
 *
 * @typedef {object} ClassDetail
 * @property {string} name
 * @property {string[]} bases
 * @property {PropertyDetail[]} properties
 * @property {string} [default] A new object as JSON.
 *
 * @typedef {object} PropertyDetail
 * @property {string} name
 * @property {string} type
 * @property {string} kind `bool`, `number`, `float`, `text`, `enum`, `flags`, `tuple` or `object`
 * @property {boolean} list
 * @property {boolean} deprecated
 * @property {[string, string]} [range]
 * @property {[string, number][]} options
 * @property {number} option_count
 * @property {string[]} [parts] of a tuple
 * @property {number} [per_part]
 * @property {string} [base]
 *
 * @typedef {object} WorldStatus How far the capture was read for a view.
 * @property {number} bytes
 * @property {boolean} complete
 * @property {boolean} caught_up
 * @property {boolean} full
 *
 * @typedef {object} NamedValue
 * @property {string} name
 * @property {string} [game] The game's name for a numbered field.
 * @property {string} value
 *
 * @typedef {object} VaultLine
 * @property {number} id
 * @property {string} type
 * @property {string} title
 * @property {number} [children]
 * @property {boolean} [deleted]
 *
 * @typedef {VaultLine & {fields: NamedValue[], parents: VaultLine[], shown_children: VaultLine[],
 *   history: {row: number, time: string, from: string, fields: NamedValue[]}[]}} VaultNode
 *
 * @typedef {object} AgeLine
 * @property {number} age
 * @property {string} name
 * @property {number} objects
 * @property {number} paths
 *
 * @typedef {object} AgeObject
 * @property {number} object
 * @property {string} name
 * @property {string | null} player
 * @property {string} descriptor
 * @property {number} changes
 *
 * @typedef {object} AgeObjectDetail
 * @property {number} object
 * @property {string} name
 * @property {string | null} player
 * @property {string} descriptor
 * @property {NamedValue[]} variables
 * @property {{row: number, time: string, from: string, variables: NamedValue[]}[]} history
 *
 * @typedef {object} AgePath
 * @property {string} name
 * @property {string | null} player
 * @property {[string, number, number, number, number][]} points Time, row, x, y, z.
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
 * @typedef {object} TeraBoard
 * @property {number} messages
 * @property {{revision: number | null, patch: string | null, has_map: boolean, definitions: number}[]} builds
 * @property {number} total
 * @property {TeraOpcode[]} opcodes
 *
 * @typedef {object} TeraOpcode
 * @property {number} build
 * @property {number} opcode
 * @property {[number, number]} messages from client and server
 * @property {number} shortest
 * @property {number} longest
 * @property {number} row
 * @property {TeraNeighbour[]} before
 * @property {TeraNeighbour[]} after
 *
 * @typedef {object} TeraNeighbour
 * @property {string} name
 * @property {number} messages
 *
 * @typedef {object} TeraCandidates
 * @property {number} tried
 * @property {TeraCandidate[]} candidates
 * @property {string[]} tied
 * @property {[number, number][]} samples row and length
 *
 * @typedef {object} TeraCandidate
 * @property {string} title
 * @property {string} name
 * @property {number} version
 * @property {number} score
 * @property {number} fits
 * @property {number} clean
 * @property {number} header
 * @property {number | null} mapped
 * @property {Record<string, number>} notes
 * @property {string | null} error
 *
 * @typedef {object} TeraLayout
 * @property {string} definition
 * @property {string} bytes
 * @property {FieldNode[]} nodes
 * @property {number} node_count
 * @property {string | null} error
 * @property {[string, number][]} notes
 *
 * @typedef {object} MxoConversation
 * @property {number} stream
 * @property {string | null} name
 * @property {number} objects
 * @property {number} positions
 * @property {string} first
 * @property {string} last
 * @property {{from: [number, number], to: [number, number]} | null} area
 *
 * @typedef {object} MxoObject
 * @property {number} view
 * @property {number} goid
 * @property {number} spawn
 * @property {string} kind
 * @property {string} name
 * @property {string | null} object
 * @property {boolean} guess
 * @property {[number, number, number]} at
 * @property {number | null} yaw
 * @property {number | null} state
 * @property {number} row
 * @property {string} since
 * @property {[number, number][]} trail
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
