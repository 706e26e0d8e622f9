'use strict';
// Replaces the package binary-search.

/**
 * The index of an element in a sorted list, or -1 - the index at which it belongs.
 * @param {any[]} list @param {any} wanted @param {(one: any, other: any, index: number, list: any[]) => number} compare
 */
module.exports = (list, wanted, compare, from = 0, to = list.length - 1) => {
  while (from <= to) {
    const middle = (from + to) >>> 1;
    const order = Number(compare(list[middle], wanted, middle, list));
    if (order === 0) return middle;
    if (order < 0) from = middle + 1;
    else to = middle - 1;
  }
  return -1 - from;
};
