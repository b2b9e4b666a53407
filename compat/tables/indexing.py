"""Indexing, and functions that take, put and find by index."""

from __future__ import annotations

from compat.tables._inputs import rows

TABLE = {
    "jax.Array.__getitem__": rows("""
        a[0]
        a[-1]
        a[5]
        a[-5]
        a[0,1]
        a[...]
        a[...,0]
        a[None]
        a[:,None]
        a[...,None]
        a[()]
        s[()]
        s[...]
        s[None]
        a[::-1]
        a[:,::-2]
        a[1:]
        a[:9]
        a[-9:1]
        a[1:0]
        a[(0,1)]
        a[np.array([0,1])]
        a[k]
        a[k,k]
        a[k,0]
        a[0,k]
        a[:,k]
        a[k,:]
        a[k[:,None],k]
        a[...,k]
        a[None,k]
        a[k,None]
        a[k,None,k]
        x3[k,:,k]
        x3[:,k,k]
        x3[0,:,k]
        x3[k,:,0]
        x3[:,0,k]
        x3[k,0]
        x3[k,...,k]
    """) + rows("""
        a[0,1,2]
        s[0]
        a[::0]
        a[1.0]
        a['x']
        a[[0,1]]
        a[[]]
        a[...,...]
    """, raises=True),
    "jax.numpy.take": rows("""
        f(w,k)
        f(a,k)
        f(a,k,axis=0)
        f(a,k,axis=1)
        f(a,i,axis=1)
        f(w,far)
        f(w,far,mode='fill')
        f(w,far,mode='clip')
        f(w,far,mode='wrap')
        f(w,far,fill_value=3)
        f(w,far,mode='fill',fill_value=-1.5)
        f(w,0)
        f(w,one)
        f(s,0)
        f(z,k,axis=1)
        f(e,np.array([],int))
    """) + rows("""
        f(w,far,mode='raise')
        f(w,far,mode='x')
        f(w,[0,1])
        f(w,0.5)
    """, raises=True),
    "jax.numpy.take_along_axis": rows("""
        f(a,i%3,1)
        f(a,jnp.argsort(a,1),axis=1)
        f(a,jnp.argsort(a,0),axis=0)
        f(w,k,axis=0)
        f(w,k,axis=None)
        f(a,k,axis=None)
        f(a,i,axis=1)
        f(a,i,axis=1,mode='clip')
        f(a,i,axis=1,mode='fill')
        f(a,i,axis=1,mode='fill',fill_value=3)
        f(a,i[:1],axis=1)
        f(a[:1],i,axis=1)
        f(a,i[:,:1],axis=1)
        f(a,i,axis=-1)
        f(a,i)
        f(x3,jnp.argmax(x3,axis=1,keepdims=True),axis=1)
    """) + rows("""
        f(a,i,axis=None)
        f(a,k,axis=1)
        f(a,a,axis=1)
        f(a,i,axis=2)
    """, raises=True),
    "jax.numpy.put": rows("""
        f(w,k,v,inplace=False)
        f(w,k,1.,inplace=False)
        f(w,far,v,inplace=False)
        f(w,far,v,mode='clip',inplace=False)
        f(w,far,v,mode='wrap',inplace=False)
        f(a,k,v,inplace=False)
        f(a,i%6,v,inplace=False)
        f(w,k,v[:2],inplace=False)
        f(w,k,w,inplace=False)
        f(e,k,v,inplace=False)
        f(w,e,v,inplace=False)
        f(w,k,e,inplace=False)
        f(w,0,1,inplace=False)
        f(k,0,1.5,inplace=False)
        f(w,one,s,inplace=False)
    """) + rows("""
        f(w,k,v)
        f(w,far,v,mode='raise',inplace=False)
        f(w,far,v,mode='x',inplace=False)
        f(w,[0,1],[5,6],inplace=False)
    """, raises=True),
    "jax.numpy.put_along_axis": rows("""
        f(a,i%3,1.,1,inplace=False)
        f(a,i,1.,1,inplace=False)
        f(a,k,v,None,inplace=False)
        f(w,k,v,0,inplace=False)
        f(a,i%2,a,0,inplace=False)
        f(a,i,9.,1,inplace=False,mode='clip')
        f(a,i,9.,1,inplace=False,mode='fill')
        f(a,i[:,:1]%3,7.,1,inplace=False)
        f(a,i[:1]%3,7.,1,inplace=False)
        f(x3,i[:,:,None]%3,1.,1,inplace=False)
    """) + rows("""
        f(a,i%3,1.,1)
        f(a,k,9.,1,inplace=False)
        f(a,v,9.,0,inplace=False)
        f(a,i%3,w,1,inplace=False)
    """, raises=True),
    "jax.numpy.place": rows("""
        f(v,t,w,inplace=False)
        f(a,T2,v,inplace=False)
        f(v,t,1.,inplace=False)
        f(a,T2.reshape(3,2),v,inplace=False)
        f(v,k,w,inplace=False)
        f(e,e,w,inplace=False)
        f(s,True,2.,inplace=False)
    """) + rows("""
        f(v,t,w)
        f(a,a>0,[1.,2.],inplace=False)
        f(v,t,e,inplace=False)
        f(v,t[:2],w,inplace=False)
    """, raises=True),
    "jax.numpy.choose": rows("""
        f(q,[o[:4],o[:4]*2,o[:4]*3])
        f(k%3,[v,v*2,v*3])
        f(k,[v,v*2,v*3],mode='wrap')
        f(k,[v,v*2,v*3],mode='clip')
        f(far,[v,1.,2],mode='clip')
        f(far,[v,1.,2],mode='wrap')
        f(p3,m[:3,:3])
        f(1,[v,w[:3]])
        f(p3,[a,a,a])
        f(one,[v,v])
        f(one,[v,v],mode='clip')
    """) + rows("""
        f(k,[v,v*2,v*3])
        f(k,[v],mode='q')
        f(v,[v])
        f(p3,[v,w,v])
    """, raises=True),
    "jax.numpy.compress": rows("""
        f(t,v)
        f(t,v,size=2)
        f(t,v,size=3)
        f(t,v,size=3,fill_value=9)
        f(t,a,axis=1)
        f(t,a)
        f(np.array([True,False]),a,axis=0)
        f(t,a,axis=1,size=3)
        f(t,w)
        f(np.array([True]*5+[False]),w)
        f(k,v)
        f(np.array([True,False]),a,axis=0,size=1)
        f(t,a,axis=1,size=1)
        f(np.array([],bool),v)
        f(t,k,size=3,fill_value=1.5)
        f(np.array([True,False]),x3,axis=0,size=2)
    """) + rows("""
        f([True,False],a,axis=0)
        f(T2,a)
        f(np.array([True]*6),w)
        f(t,v,out=1)
    """, raises=True),
    "jax.numpy.extract": rows("""
        f(t,v)
        f(T2,a)
        f(T2,a,size=3)
        f(T2,a,size=5,fill_value=7)
        f(a>0,a)
        f(k,v)
        f(t,w)
        f(t,v,size=1)
        f(np.array([True,False,True]),v)
        f(s,v)
        f(True,v)
    """) + rows("""
        f([True,False],v)
    """, raises=True),
    "jax.numpy.select": rows("""
        f([v>0],[v])
        f([v>0,t],[v,k])
        f([v>0,t],[v,k],default=9)
        f([v>0,t],[v,1j])
        f([T2,t],[a,v])
        f([k],[v])
        f([v],[v])
        f([t,t],[1,2],3)
        f([True],[v])
        f([t],[v],default=s)
        f([np.array([True,False,True])],[v],k)
        f(T2,a)
        f((t,~t),(v,v*2))
        f([t],[a])
        f([t,v>0],[k,u[:3]])
        f([t[:1]],[v])
    """) + rows("""
        f([t],[v,v])
        f([],[])
        f([t],[[1,2,3]])
        f([t],[w])
    """, raises=True),
    "jax.numpy.where": rows("""
        f(t,v,0)
        f(t,v,k)
        f(t,1,2.)
        f(t,1,2)
        f(t)
        f(t,size=2)
        f(t,size=3,fill_value=-1)
        f(T2)
        f(T2,size=4)
        f(T2,size=5,fill_value=(7,8))
        f(T2,a,v)
        f(v,v,0)
        f(t,a,v)
        f(t[:,None],v,1.)
        f(True,v,0)
        f(s,1,2)
    """) + rows("""
        f(t,v)
        f(t,None,v)
        f(t,v,w)
        f(t,v,v,size=3)
    """, raises=True),
    "jax.numpy.nonzero": rows("""
        f(t)
        f(a)
        f(T2)
        f(T2,size=4)
        f(T2,size=2)
        f(T2,size=5,fill_value=9)
        f(T2,size=5,fill_value=(8,9))
        f(k)
        f(e)
        f(z)
        f(z,size=2)
        f(z,size=2,fill_value=4)
        f(c)
        f(t,size=one)
        f(t,size=0)
        f(x3>0,size=30)
    """) + rows("""
        f(T2,size=5,fill_value=(8,))
        f(s)
        f([0,1])
        f(1)
    """, raises=True),
    "jax.numpy.flatnonzero": rows("""
        f(a)
        f(T2,size=4)
        f(T2,size=4,fill_value=-1)
        f(s)
    """) + rows("""
        f([0,1])
    """, raises=True),
    "jax.numpy.argwhere": rows("""
        f(T2)
        f(T2,size=4)
        f(T2,size=4,fill_value=-1)
        f(T2,size=4,fill_value=(7,8))
        f(s)
        f(np.float32(0))
        f(s,size=2)
        f(v)
        f(z)
        f(s,size=1,fill_value=3)
    """) + rows("""
        f([[0,1]])
    """, raises=True),
    "jax.numpy.ix_": rows("""
        f(k,q)
        f(k)
        f()
        f(v)
        f(e)
        f(u,k,q)
    """) + rows("""
        f(t,k)
        f(a,k)
        f([0,1],[1])
        f(s)
    """, raises=True),
    "jax.numpy.unravel_index": rows("""
        f(k,(2,3))
        f(i,(2,3))
        f(5,(2,3))
        f(far,(2,3))
        f(k,5)
        f(k,())
        f(u,(20,30))
        f(one,(2,3))
        f(k,[2,3])
        f(-1,(2,3))
        f(jnp.argmax(a),a.shape)
        f(k,(2,3,4))
        f(np.uint32(4),(2,3))
    """) + rows("""
        f([1,2],(2,3))
    """, raises=True),
    "jax.numpy.ravel_multi_index": rows("""
        f((p3,p3),(3,3))
        f((k,k),(3,3),mode='wrap')
        f((far,far),(3,3),mode='clip')
        f((p3,p3),(3,3),order='F')
        f((1,2),(3,3))
        f((p3,1),(3,3),mode='clip')
        f((p3[:,None],p3),(3,3),mode='clip')
        f(p3,(3,3,3))
        f((p3,p3),(one*3,3),mode='clip')
        f((np.array([1,2]),np.array([0,1])),(3,3))
    """) + rows("""
        f((far,far),(3,3))
        f((p3,p3),(3,3),order='Q')
        f((p3,p3),(3,3),mode='q')
        f((v,p3),(3,3))
    """, raises=True),
    "jax.numpy.fill_diagonal": rows("""
        f(m,1.,inplace=False)
        f(a,1.,inplace=False)
        f(b,v,inplace=False)
        f(m,v,inplace=False)
        f(m,w,inplace=False)
        f(m,m,inplace=False)
        f(i,1.5,inplace=False)
        f(m[None]*jnp.ones((4,1,1)),w[:4],inplace=False)
        f(z,1.,inplace=False)
        f(m,s,inplace=False)
        f(b.T,v,inplace=False)
    """) + rows("""
        f(m,1.)
        f(x3,1.,inplace=False)
        f(v,1.,inplace=False)
        f(m,1.,wrap=True,inplace=False)
    """, raises=True),
    "jax.numpy.index_exp": rows("""
        f[0,1:2]
    """),
    "jax.numpy.s_": rows("""
        f[0,1:2]
        f[::2]
    """),
    "jax.numpy.array": rows("""
        f(2) in v
    """),
}
