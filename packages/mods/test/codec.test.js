'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { Codec } = require('../lib/codec');
const { listedDefinition, parseDefinition } = require('../lib/definition');
const { SkillID, Vec3 } = require('../lib/types');

const codec = (/** @type {string} */ text) => new Codec(parseDefinition(text));
/** @param {string} definition @param {any} fields @returns {any} */
const through = (definition, fields) => ({ ...codec(definition).read(codec(definition).encode(1, fields)) });

test('the layout matches the game', () => {
  // The example from the format's documentation.
  const bytes = codec('int32 number\narray list\n- int16 value').encode(0x1234, { number: 7, list: [{ value: 1 }, { value: 2 }] });
  assert.strictEqual(bytes.toString('hex'), '1800341202000c00070000000c00120001001200000002 00'.replace(' ', ''));
});

test('numbers are converted as in JavaScript', () => {
  assert.strictEqual(through('byte a', { a: 257 }).a, 1);
  assert.strictEqual(through('int32 a', { a: '12' }).a, 12);
  assert.strictEqual(through('int32 a', { a: -1.9 }).a, -1);
  assert.strictEqual(through('uint16 a', { a: NaN }).a, 0);
  assert.strictEqual(through('bool a', { a: 'x' }).a, true);
  assert.throws(() => codec('int32 a').encode(1, { a: 1n }), TypeError);
  assert.strictEqual(through('uint64 a', { a: -1n }).a, 2n ** 64n - 1n);
  assert.strictEqual(through('int64 a', { a: '9007199254740993' }).a, 9007199254740993n);
  assert.strictEqual(through('int64 a', { a: '' }).a, 0n);
  assert.throws(() => codec('int64 a').encode(1, { a: 1.5 }), RangeError);
});

test('missing fields are zero or empty, and unknown ones are ignored', () => {
  const definition = 'ref s\nref b\nref l\nint32 i\nfloat f\nint64 n\nvec3 v\nskillid k\nobject o\n- bool x\nstring s\nbytes b\narray l\n- byte y';
  const event = through(definition, { unknown: 1 });
  assert.deepStrictEqual(event, {
    i: 0, f: 0, n: 0n, v: new Vec3(), k: new SkillID({ type: 0 }), o: { x: false }, s: '', b: Buffer.alloc(0), l: [],
  });
  assert.deepStrictEqual(through(definition, undefined), event);
  assert.strictEqual(through('string s', { s: 5 }).s, '');
  assert.strictEqual(through('string s', { s: null }).s, '');
});

test('points, angles and skills have classes', () => {
  const point = through('vec3 a', { a: { x: 1.5, y: -2, z: 3 } }).a;
  assert(point instanceof Vec3);
  assert.strictEqual(String(point.add(1, 1, 1).scale(2)), '5,-2,8');
  assert.strictEqual(new Vec3(3, 4, 0).dist2D(new Vec3()), 5);
  let changed = 0;
  const angle = codec('angle a');
  for (let units = -32768; units < 32768; units++) {
    const bytes = Buffer.from([6, 0, 1, 0, units & 255, (units >> 8) & 255]);
    if (!angle.encode(1, angle.read(bytes)).equals(bytes)) changed++;
  }
  // tera-toolbox changes the same number of angles, because it truncates instead of rounding.
  assert.strictEqual(changed, 8);
  for (const [skill, text] of /** @type {[any, string][]} */ ([
    [10, 'A10'],
    [new SkillID(11, 1, true, 7), 'A7:11'],
    [{ id: 3, type: 2 }, 'R3'],
    [new SkillID({ id: 5, type: 4, reserved: 1 }), '[X1][T4]5'],
  ])) {
    assert.strictEqual(String(through('skillid a', { a: skill }).a), text);
    assert.strictEqual(String(through('skillid32 a', { a: skill }).a), text);
  }
  assert.strictEqual(through('customize a', { a: 0x0102n }).a.skinColor, 1);
  assert.strictEqual(through('customize a', { a: { voice: 9 } }).a.voice, 9);
});

test('arrays, texts and bytes are found by their offsets', () => {
  const definition = 'array a\n- string s\n- array<uint32> n\narray<string> t\nbytes b\nstring s';
  const fields = { a: [{ s: 'x'.repeat(40), n: [1, 2] }, { s: '', n: [] }], t: ['one', ''], b: Buffer.from([1, 2]), s: '\ud800' };
  assert.deepStrictEqual(through(definition, fields), fields);
  const mixed = codec('array[interleaved] a\n- byte x\narray<vec3>[interleaved] b');
  const bytes = mixed.encode(1, { a: [{ x: 1 }, { x: 2 }], b: [new Vec3(1, 2, 3)] });
  assert.deepStrictEqual({ ...mixed.read(bytes) }, { a: [{ x: 1 }, { x: 2 }], b: [new Vec3(1, 2, 3)] });
  // The first element of the second array lies between those of the first one.
  assert(bytes.readUInt16LE(10) < bytes.readUInt16LE(bytes.readUInt16LE(6) + 2));
  const split = through('object o\n- byte a\nbyte x\nobject o\n- byte b', { o: { a: 1, b: 2 }, x: 3 });
  assert.deepStrictEqual(split, { o: { a: 1, b: 2 }, x: 3 });
});

test('values that do not fit are refused', () => {
  assert.throws(() => codec('string s').encode(1, { s: 'x'.repeat(33_000) }), /more than 65535 bytes/);
  assert.throws(() => codec('bytes b').encode(1, { b: Buffer.alloc(65_536) }), /more than 65535 bytes/);
  assert.throws(() => codec('int32 a').read(Buffer.from([6, 0, 1, 0, 0, 0])), RangeError);
  assert.throws(() => codec('string s').read(Buffer.from([6, 0, 1, 0, 99, 0])), RangeError);
  // A list whose elements are all the same element, with a long text.
  const shared = Buffer.alloc(60_000, 1);
  Buffer.from([0, 0, 1, 0, 255, 255, 8, 0, 8, 0, 8, 0, 14, 0]).copy(shared);
  shared.writeUInt16LE(0, 59_998);
  assert.throws(() => codec('array a\n- string s').read(shared), /more than 262144 elements and characters/);
  // Elements that contain each other must not take long.
  const nested = codec('array a\n- array b\n- - array c\n- - - byte x');
  const bytes = Buffer.alloc(24);
  for (let at = 4; at < 24; at += 4) bytes.writeUInt16LE(65535, at), bytes.writeUInt16LE(4, at + 2);
  bytes.writeUInt16LE(4, 6);
  assert.throws(() => nested.read(bytes), RangeError);
  for (const wrong of ['int32', 'in32 a', '- int32 a', 'int32 a\n- int32 b', 'array<foo> a', 'ref s\nstring t']) {
    assert.throws(() => codec(wrong), `"${wrong}" is a mistake`);
  }
});

test('definitions can be lists', () => {
  const object = Object.assign([['x', 'byte']], { type: 'object' });
  const list = new Codec(listedDefinition([['a', 'int32'], ['l', [['s', 'string']]], ['o', object]]));
  const fields = { a: 1, l: [{ s: 'x' }], o: { x: 2 } };
  assert.deepStrictEqual({ ...list.read(list.encode(1, fields)) }, fields);
});

const { WORLDWIRE_TERA_DATA: data, WORLDWIRE_TERA_VECTORS: vectors } = process.env;
test('messages with real definitions are written as they were read', { skip: data && vectors ? false : 'WORLDWIRE_TERA_DATA and WORLDWIRE_TERA_VECTORS are not set' }, () => {
  let count = 0;
  for (const line of fs.readFileSync(String(vectors), 'utf8').split('\n').filter(Boolean)) {
    const { file, bytes } = JSON.parse(line);
    const definition = codec(fs.readFileSync(path.join(String(data), 'definitions', file), 'utf8'));
    const message = Buffer.from(bytes, 'hex');
    assert.strictEqual(definition.encode(message.readUInt16LE(2), definition.read(message)).toString('hex'), bytes, file);
    count++;
  }
  assert(count > 500);
});
