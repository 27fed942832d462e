//! An ordered map whose clone costs nothing, so that a batch can be tried on a copy of the run.
//! It knows only keys and values. (An AVL tree with shared nodes; a write copies the path it touches,
//! and only where somebody else still holds it.)

use std::cmp::Ordering;
use std::rc::Rc;

#[derive(Clone)]
struct Node<K, V> {
    key: K,
    value: V,
    height: u8,
    left: Link<K, V>,
    right: Link<K, V>,
}

type Link<K, V> = Option<Rc<Node<K, V>>>;

/// Ordered, persistent: `clone` is O(1), `insert` and `get` are O(log n).
#[derive(Clone)]
pub struct Pmap<K, V> {
    root: Link<K, V>,
    len: usize,
}

impl<K, V> Default for Pmap<K, V> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> Pmap<K, V> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let mut at = self.root.as_deref();
        while let Some(node) = at {
            match key.cmp(node.key.borrow()) {
                Ordering::Less => at = node.left.as_deref(),
                Ordering::Greater => at = node.right.as_deref(),
                Ordering::Equal => return Some(&node.value),
            }
        }
        None
    }

    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: std::borrow::Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The value to change in place; nodes that a clone still holds are copied first.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let mut at = &mut self.root;
        while let Some(link) = at {
            let node = Rc::make_mut(link);
            match key.cmp(node.key.borrow()) {
                Ordering::Less => at = &mut node.left,
                Ordering::Greater => at = &mut node.right,
                Ordering::Equal => return Some(&mut node.value),
            }
        }
        None
    }

    pub fn insert(&mut self, key: K, value: V) {
        if insert(&mut self.root, key, value) {
            self.len += 1;
        }
    }

    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { stack: Vec::new() };
        iter.descend(self.root.as_deref());
        iter
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub fn last(&self) -> Option<&V> {
        let mut at = self.root.as_deref()?;
        while let Some(right) = at.right.as_deref() {
            at = right;
        }
        Some(&at.value)
    }
}

impl<K: Ord + Clone + std::fmt::Debug, V: Clone + std::fmt::Debug> std::fmt::Debug for Pmap<K, V> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

fn height<K, V>(link: &Link<K, V>) -> u8 {
    link.as_ref().map_or(0, |node| node.height)
}

fn measure<K, V>(node: &mut Node<K, V>) {
    node.height = 1 + height(&node.left).max(height(&node.right));
}

fn insert<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>, key: K, value: V) -> bool {
    let Some(shared) = link else {
        *link = Some(Rc::new(Node { key, value, height: 1, left: None, right: None }));
        return true;
    };
    let node = Rc::make_mut(shared);
    let grew = match key.cmp(&node.key) {
        Ordering::Less => insert(&mut node.left, key, value),
        Ordering::Greater => insert(&mut node.right, key, value),
        Ordering::Equal => {
            node.value = value;
            return false;
        }
    };
    if grew {
        balance(link);
    }
    grew
}

fn balance<K: Clone, V: Clone>(link: &mut Link<K, V>) {
    let Some(shared) = link else { return };
    let node = Rc::make_mut(shared);
    measure(node);
    let (left, right) = (height(&node.left), height(&node.right));
    if left > right + 1 {
        if let Some(child) = &node.left
            && height(&child.right) > height(&child.left)
        {
            rotate_left(&mut node.left);
        }
        rotate_right(link);
    } else if right > left + 1 {
        if let Some(child) = &node.right
            && height(&child.left) > height(&child.right)
        {
            rotate_right(&mut node.right);
        }
        rotate_left(link);
    }
}

fn rotate_right<K: Clone, V: Clone>(link: &mut Link<K, V>) {
    let Some(mut top) = link.take() else { return };
    let node = Rc::make_mut(&mut top);
    let Some(mut pivot) = node.left.take() else {
        *link = Some(top);
        return;
    };
    let up = Rc::make_mut(&mut pivot);
    node.left = up.right.take();
    measure(node);
    up.right = Some(top);
    measure(up);
    *link = Some(pivot);
}

fn rotate_left<K: Clone, V: Clone>(link: &mut Link<K, V>) {
    let Some(mut top) = link.take() else { return };
    let node = Rc::make_mut(&mut top);
    let Some(mut pivot) = node.right.take() else {
        *link = Some(top);
        return;
    };
    let up = Rc::make_mut(&mut pivot);
    node.right = up.left.take();
    measure(node);
    up.left = Some(top);
    measure(up);
    *link = Some(pivot);
}

pub struct Iter<'a, K, V> {
    stack: Vec<&'a Node<K, V>>,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn descend(&mut self, mut at: Option<&'a Node<K, V>>) {
        while let Some(node) = at {
            self.stack.push(node);
            at = node.left.as_deref();
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);
    fn next(&mut self) -> Option<Self::Item> {
        let node = self.stack.pop()?;
        self.descend(node.right.as_deref());
        Some((&node.key, &node.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_the_standard_map_and_its_clones_do_not_change() {
        let mut ours: Pmap<u32, u32> = Pmap::new();
        let mut theirs = std::collections::BTreeMap::new();
        let mut seed = 7u32;
        for step in 0..5000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let before = (ours.clone(), theirs.clone());
            let key = seed >> 22;
            ours.insert(key, step);
            theirs.insert(key, step);
            if let Some(value) = ours.get_mut(&(key / 2)) {
                *value += 1;
            }
            theirs.entry(key / 2).and_modify(|value| *value += 1);
            if step % 97 == 0 {
                assert!(ours.iter().eq(theirs.iter()));
                assert!(before.0.iter().eq(before.1.iter()));
            }
        }
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(ours.last(), theirs.values().last());
        assert!(height(&ours.root) < 14, "the tree stays balanced");
    }
}
